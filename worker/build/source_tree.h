// The files of one build in a folder, as #include finds them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pawl/v1/builder.pb.h"

namespace pawl {

// Paths of a request's files to their texts, the source among them.
using SourceTexts = std::map<std::string, const std::string*>;
SourceTexts TextsOf(const v1::BuildRequest& request);

// The folder's name is always the same within a sandbox, so that a build of the same files gives the same code whatever
// it does with __FILE__. Removed with the object. One at a time in a process.
class SourceTree {
 public:
  explicit SourceTree(bool sandboxed);
  ~SourceTree();
  SourceTree(const SourceTree&) = delete;

  // InvalidArgument: a path leads out of the folder. Otherwise the machine's fault.
  absl::Status Write(const v1::BuildRequest& request);

  const std::filesystem::path& path() const { return folder_; }
  // Where #include "..." of the source is looked for: beside the source, then from the top.
  std::vector<std::string> IncludeFolders(const std::string& source) const;
  // A compiler's log with the files as the bundle names them.
  std::string WithoutFolder(const std::string& log) const;

 private:
  std::filesystem::path folder_;
};

// A path in a compiler's message as the bundle has it: include/../other.cuh is other.cuh.
std::string NormalPath(const std::string& path);

// A file that includes itself by way of others, with nothing to end it: "a.cuh(1): error: ..."; empty: there is none.
std::string CyclicInclude(const v1::BuildRequest& request);

// The file of the request that an #include in `from` means; empty: none of them.
std::string IncludedFile(const SourceTexts& texts, const std::string& from, const std::string& included);

}  // namespace pawl
