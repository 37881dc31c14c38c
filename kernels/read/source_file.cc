#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/limits.h"
#include "kernels/read/reading.h"

namespace pawl {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

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

namespace {

// Where a path of the bundle leads, which is inside its folder.
absl::StatusOr<fs::path> RealPath(const fs::path& folder, const std::string& path) {
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
  return real;
}

// Of a name: * stands for any characters.
bool MatchesName(absl::string_view name, absl::string_view pattern) {
  size_t star = pattern.npos, back = 0, at = 0, in = 0;
  while (at < name.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      back = at;
    } else if (in < pattern.size() && pattern[in] == name[at]) {
      ++in;
      ++at;
    } else if (star != pattern.npos) {
      in = star + 1;
      at = ++back;
    } else {
      return false;
    }
  }
  while (in < pattern.size() && pattern[in] == '*') ++in;
  return in == pattern.size();
}

// Goes down the folders that a pattern allows.
class PatternSearch {
 public:
  PatternSearch(const fs::path& root, const std::string& pattern)
      : root_(root), parts_(absl::StrSplit(pattern, '/', absl::SkipEmpty())) {}

  absl::StatusOr<std::vector<std::string>> Find() {
    Visit("", 0);
    if (visited_ > kMaxVisited) {
      return absl::OutOfRangeError(absl::StrCat("there are more than ", kMaxVisited,
                                                " files and folders to look at; expected a narrower pattern"));
    }
    return std::vector<std::string>(found_.begin(), found_.end());
  }

 private:
  void Visit(const fs::path& folder, size_t part) {
    const bool any = parts_[part] == "**", last = part + 1 == parts_.size();
    if (any && !last) Visit(folder, part + 1);
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root_ / folder, error)) {
      if (++visited_ > kMaxVisited) return;
      const std::string name = entry.path().filename().string();
      const bool hidden = name[0] == '.' && parts_[part][0] != '.';
      if (hidden || (!any && !MatchesName(name, parts_[part]))) continue;
      const bool folder_itself = entry.is_directory(error) && !entry.is_symlink(error);
      if (folder_itself && any) Visit(folder / name, part);
      if (folder_itself && !any && !last) Visit(folder / name, part + 1);
      if (!folder_itself && last && entry.is_regular_file(error)) found_.insert((folder / name).string());
    }
  }

  const fs::path root_;
  const std::vector<std::string> parts_;
  std::set<std::string> found_;
  size_t visited_ = 0;
};

using Parts = std::vector<std::string>;

// As PatternSearch finds files; from the end, each pair of places once.
bool ArePartsLike(const Parts& path, const Parts& pattern) {
  std::vector<bool> after(path.size() + 1);  // whether the path from here on is like the rest of the pattern
  after[path.size()] = true;
  for (size_t part = pattern.size(); part-- > 0;) {
    const bool any = pattern[part] == "**", last = part + 1 == pattern.size();
    std::vector<bool> here(path.size() + 1);
    for (size_t at = path.size(); at-- > 0;) {
      if (path[at][0] == '.' && pattern[part][0] != '.') continue;
      if (!any) {
        here[at] = after[at + 1] && MatchesName(path[at], pattern[part]);
      } else {
        here[at] = here[at + 1] || (last ? at + 1 == path.size() : static_cast<bool>(after[at]));
      }
    }
    after = std::move(here);
  }
  return after[0];
}

}  // namespace

bool IsLike(const std::string& path, const std::string& pattern) {
  const Parts parts = absl::StrSplit(path, '/', absl::SkipEmpty()),
              of = absl::StrSplit(pattern, '/', absl::SkipEmpty());
  constexpr size_t kMostFolders = 20;
  return parts.size() <= kMostFolders && of.size() <= kMostFolders && !parts.empty() && ArePartsLike(parts, of);
}

absl::StatusOr<std::vector<std::string>> FilesLike(const fs::path& folder, const std::string& pattern) {
  if (!absl::StrContains(pattern, "*")) return std::vector<std::string>{pattern};
  const fs::path relative(pattern);
  if (relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return absl::PermissionDeniedError(
        absl::StrCat(pattern, " may lie outside of the bundle's folder; expected a path inside it"));
  }
  return PatternSearch(folder, pattern).Find();
}

absl::StatusOr<std::string> ReadBinaryFile(const fs::path& folder, const std::string& path, size_t most) {
  const absl::StatusOr<fs::path> real = RealPath(folder, path);
  if (!real.ok()) return real.status();
  std::error_code error;
  const uintmax_t size = fs::file_size(*real, error);
  const auto too_large = [&] { return absl::OutOfRangeError(absl::StrCat(path, " is larger than ", most, " bytes")); };
  if (!error && size > most) return too_large();
  std::ifstream stream(*real, std::ios::binary);
  std::string bytes(error ? most + 1 : size + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad() || (!stream && !stream.eof())) {
    return absl::NotFoundError(absl::StrCat("the file ", path, " can't be read; is it readable for you?"));
  }
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (bytes.size() > most) return too_large();
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  return bytes;
}

absl::StatusOr<std::string> ReadSourceFile(const fs::path& folder, const std::string& path) {
  const absl::StatusOr<fs::path> real = RealPath(folder, path);
  if (!real.ok()) return real.status();
  std::ifstream stream(*real, std::ios::binary);
  std::string text(kMaxSourceBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream && !stream.eof())) {
    return absl::NotFoundError(absl::StrCat("the file ", path, " can't be read; is it readable for you?"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxSourceBytes) return absl::OutOfRangeError(absl::StrCat(path, " is larger than 1 MB"));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());  // which NVRTC takes for a token
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  }
  if (int line = FirstBadLine(text); line != 0) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, " of ", path, " is not UTF-8 text"));
  }
  return text;
}

}  // namespace pawl
