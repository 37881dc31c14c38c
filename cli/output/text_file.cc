#include "cli/output/text_file.h"

#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace pawl {

absl::Status WriteTextFile(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path beside = file.string() + ".new";
  errno = 0;
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code error(out ? 0 : errno, std::generic_category());
  if (out) std::filesystem::rename(beside, file, error);
  if (out && !error) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  return absl::PermissionDeniedError(absl::StrCat("can't write ", file.string(), ": ", error.message()));
}

}  // namespace pawl
