#include "cli/output/files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/names/utf8.h"

namespace pawl {
namespace {

constexpr size_t kMaxPatch = 1 << 20;
constexpr int kStreams[] = {STDOUT_FILENO, STDERR_FILENO};

// `--output /dev/stdout` with the output led to a file.
bool IsStandardStream(const std::filesystem::path& file) {
  struct stat own, other;
  if (stat(file.c_str(), &own) != 0) return false;
  return std::any_of(std::begin(kStreams), std::end(kStreams), [&](int stream) {
    return fstat(stream, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
  });
}

}  // namespace

absl::Status WriteTextFile(const std::filesystem::path& file, const std::string& text) {
  std::error_code error;
  // What a link leads to; where that is no file but a device or a pipe, it is written to and not replaced.
  const bool there = std::filesystem::exists(file, error);
  std::filesystem::path target = there ? std::filesystem::canonical(file, error) : file;
  const bool replaced =
      !there || (!error && std::filesystem::is_regular_file(target, error) && !IsStandardStream(target));
  if (error) target = file;
  const std::filesystem::path written =
      replaced ? absl::StrCat(target.string(), ".", getpid(), ".new") : target.string();
  errno = 0;
  std::ofstream out(written, std::ios::binary | (replaced ? std::ios::trunc : std::ios::app));
  out << text;
  out.close();
  error = std::error_code(out ? 0 : errno, std::generic_category());
  if (out && replaced) std::filesystem::rename(written, target, error);
  if (out && !error) return absl::OkStatus();
  std::error_code ignored;
  if (replaced) std::filesystem::remove(written, ignored);
  return absl::PermissionDeniedError(absl::StrCat("can't write ", file.string(), ": ", error.message()));
}

absl::StatusOr<std::string> ReadPackedFile(const std::filesystem::path& file, size_t max_bytes) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " is a folder; expected a file"));
  }
  gzFile in = gzopen(file.c_str(), "rb");  // reads plain files too
  if (in == nullptr) return absl::NotFoundError(absl::StrCat(file.string(), ": ", strerror(errno)));
  std::string text;
  char block[1 << 16];
  int read = 0;
  while (text.size() <= max_bytes && (read = gzread(in, block, sizeof(block))) > 0) {
    text.append(block, static_cast<size_t>(read));
  }
  const int closed = gzclose(in);
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " has more than ", max_bytes >> 20, " MB unpacked"));
  }
  if (read < 0 || closed != Z_OK) {
    return absl::DataLossError(absl::StrCat(file.string(), " is damaged: it does not unpack"));
  }
  return text;
}

absl::StatusOr<std::string> ReadPatch(const std::string& file) {
  const bool standard_input = file == "-";
  const std::string what = standard_input ? "the patch on standard input" : file;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(
      standard_input ? nullptr : std::fopen(file.c_str(), "rb"), [](std::FILE* stream) { return std::fclose(stream); });
  std::FILE* in = standard_input ? stdin : opened.get();
  if (in == nullptr) return absl::NotFoundError(absl::StrCat(file, ": ", strerror(errno)));
  std::string text(kMaxPatch + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), in));
  if (std::ferror(in) != 0) return absl::NotFoundError(absl::StrCat(what, " can't be read: ", strerror(errno)));
  if (text.size() > kMaxPatch) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is larger than ", kMaxPatch >> 20, " MB; expected one edit of the kernel's source"));
  }
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat(what, " is empty; expected a unified diff"));
  if (ValidUtf8(text) != text) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is not UTF-8 text; expected a unified diff"));
  }
  return text;
}

}  // namespace pawl
