#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "worker/process/spawn.h"

namespace pawl {

absl::StatusOr<std::string> FindPawlProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::filesystem::path> folders = {here, here.parent_path() / "bin"};
  if (const char* given = getenv("PAWL_BIN_DIR")) folders.insert(folders.begin(), given);
  std::string looked;
  for (const std::filesystem::path& folder : folders) {
    const std::string path = (folder / name).string();
    if (access(path.c_str(), X_OK) == 0) return path;
    absl::StrAppend(&looked, looked.empty() ? "" : ", ", folder.string());
  }
  return absl::NotFoundError(absl::StrCat(name, " was not found in ", looked,
                                          ": build it (scripts/build), or set PAWL_BIN_DIR to its folder"));
}

}  // namespace pawl
