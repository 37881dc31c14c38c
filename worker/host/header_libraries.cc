#include "worker/host/header_libraries.h"

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/bundle_message.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// Header libraries of the toolkit, and a header by which each is known to be there.
const std::map<std::string, std::string>& ToolkitLibraries() {
  static const auto& libraries = *new std::map<std::string, std::string>{
      {"cccl", "cuda/std/type_traits"},       {"cooperative_groups", "cooperative_groups.h"},
      {"cub", "cub/block/block_reduce.cuh"},  {"curand", "curand_kernel.h"},
      {"libcudacxx", "cuda/std/type_traits"}, {"nvtx", "nvtx3/nvToolsExt.h"},
      {"thrust", "thrust/complex.h"}};
  return libraries;
}

bool HasHeader(const std::string& toolkit_include, const std::string& header) {
  std::error_code error;
  for (const std::string& folder : ToolkitFolders(toolkit_include)) {
    if (fs::exists(fs::path(folder) / header, error)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> ToolkitFolders(const std::string& toolkit_include) {
  if (toolkit_include.empty()) return {};
  std::vector<std::string> folders = {toolkit_include};
  std::error_code error;
  const std::string cccl = toolkit_include + "/cccl";  // since CUDA 13
  if (fs::is_directory(cccl, error)) folders.push_back(cccl);
  return folders;
}

absl::StatusOr<std::vector<std::string>> IncludeFolders(const std::vector<std::string>& names,
                                                        const std::string& toolkit_include,
                                                        const std::map<std::string, std::string>& allowed) {
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    const auto by_administrator = allowed.find(name);
    if (by_administrator != allowed.end()) {
      folders.push_back(by_administrator->second);
      continue;
    }
    const auto of_toolkit = ToolkitLibraries().find(name);
    if (of_toolkit != ToolkitLibraries().end() && HasHeader(toolkit_include, of_toolkit->second)) continue;
    std::set<std::string> known;
    for (const auto& [other, folder] : allowed) known.insert(other);
    for (const auto& [other, header] : ToolkitLibraries()) {
      if (HasHeader(toolkit_include, header)) known.insert(other);
    }
    return absl::NotFoundError(absl::StrCat(
        "this worker has no header library ", name, "; it has ", known.empty() ? "none" : absl::StrJoin(known, ", "),
        ". Its administrator allows another one with pawl-worker --include ", name, "=FOLDER"));
  }
  return folders;
}

std::string AddLibrary(const std::string& text, std::map<std::string, std::string>* allowed) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (!IsHeaderLibrary(parts.first) || parts.second.empty()) {
    return absl::StrCat("\"", text, "\" is not NAME=FOLDER, such as cutlass=/opt/cutlass/include");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(parts.second, error);
  if (error || !fs::is_directory(folder, error)) return absl::StrCat("there is no folder ", parts.second);
  if (!folder.relative_path().has_parent_path()) {
    return absl::StrCat(parts.second, " is too much to show to a build; expected the library's own folder");
  }
  (*allowed)[parts.first] = folder.string();
  return "";
}

}  // namespace pawl
