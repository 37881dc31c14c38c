// Header libraries that a bundle asks for by name: those of the toolkit, and those that the worker's administrator
// allows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// The folders to search for headers of these libraries, in this order. Those of the toolkit need none: its folders are
// always searched. An error names the library that is not there and those that are.
absl::StatusOr<std::vector<std::string>> IncludeFolders(const std::vector<std::string>& names,
                                                        const std::string& toolkit_include,
                                                        const std::map<std::string, std::string>& allowed);

// The toolkit's folders for headers: its own, and that of CCCL, where it is apart.
std::vector<std::string> ToolkitFolders(const std::string& toolkit_include);

// NAME=FOLDER, as an administrator writes it; the folder must be there. Answers what is wrong; empty: it was added.
std::string AddLibrary(const std::string& text, std::map<std::string, std::string>* allowed);

}  // namespace pawl
