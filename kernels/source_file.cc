#include <algorithm>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/limits.h"
#include "kernels/reading.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// Protobuf's strings must be UTF-8. Answers the line of the first byte that is not, 0 when all are.
int FirstBadLine(const std::string& text) {
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
    const unsigned c = byte(i);
    if (c == 0) return line;
    if (c == '\n') ++line;
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 9;
    if (more == 9) return line;
    for (size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return line;
    }
    const unsigned second = byte(i + 1);
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0) || (c == 0xf0 && second < 0x90) ||
        (c == 0xf4 && second >= 0x90)) {
      return line;  // overlong, a surrogate, or beyond Unicode
    }
    i += more + 1;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::string> ReadSourceFile(const fs::path& folder, const std::string& path) {
  if (path.size() > kMaxPath) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path has ", path.size(), " bytes; expected at most ", kMaxPath));
  }
  const fs::path relative(path);
  if (relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " may lie outside of the bundle's folder; expected a path inside it"));
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return absl::NotFoundError(absl::StrCat("the bundle's folder can't be read: ", error.message()));
  const fs::path real = fs::canonical(root / relative, error);
  if (error) return absl::NotFoundError(absl::StrCat("the file ", path, " can't be read: ", error.message()));
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end()) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is a symbolic link to outside of the bundle's folder"));
  }
  if (!fs::is_regular_file(real, error)) return absl::NotFoundError(absl::StrCat(path, " is not a file"));

  std::ifstream stream(real, std::ios::binary);
  std::string text(kMaxSourceBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream && !stream.eof())) {
    return absl::NotFoundError(absl::StrCat("the file ", path, " can't be read; is it readable for you?"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxSourceBytes) return absl::OutOfRangeError(absl::StrCat(path, " is larger than 1 MB"));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  }
  if (int line = FirstBadLine(text); line != 0) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, " of ", path, " is not UTF-8 text"));
  }
  return text;
}

}  // namespace pawl
