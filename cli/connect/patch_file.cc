#include "cli/connect/patch_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/process/utf8.h"

namespace pawl {
namespace {

constexpr size_t kMaxPatch = 1 << 20;

}  // namespace

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
    return absl::InvalidArgumentError(absl::StrCat(what, " is no UTF-8 text; expected a unified diff"));
  }
  return text;
}

}  // namespace pawl
