#include "worker/replay/recordings_folder.h"

namespace pawl {

namespace fs = std::filesystem;

fs::path FindRecordingsFolder() {
  std::error_code error;
  return FindRecordingsFolder(fs::read_symlink("/proc/self/exe", error).parent_path());
}

fs::path FindRecordingsFolder(const fs::path& program_folder) {
  std::error_code error;
  const fs::path packaged = program_folder.parent_path() / "share/pawl/profiles/recordings";
  if (fs::is_directory(packaged, error)) return packaged;
  for (fs::path folder = program_folder; !folder.empty(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "profiles/recordings", error)) return folder / "profiles/recordings";
    if (folder == folder.parent_path()) break;
  }
  return {};
}

}  // namespace pawl
