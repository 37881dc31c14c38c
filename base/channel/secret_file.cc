#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/channel/tls_files.h"

namespace pawl {
namespace {

constexpr size_t kMostBytes = 1 << 20;

absl::StatusOr<std::string> Read(const std::string& path, const std::string& what, bool secret) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(what, ", ", path, ", ", why));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refuse(absl::StrCat("can't be read: ", strerror(errno)));
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if (secret) {
    const bool roots = info.st_uid == 0;
    if (!roots && info.st_uid != geteuid()) return refuse("belongs to another user, who could change it");
    if (info.st_mode & (roots ? 0037 : 0077)) {
      return refuse(absl::StrFormat("can be read by others (mode %03o): chmod 600 it", info.st_mode & 0777));
    }
  }
  std::string text(kMostBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(absl::StrCat("can't be read: ", strerror(errno)));
    if (got == 0) break;
    size += got;
  }
  if (size > kMostBytes) return refuse("is larger than 1 MB");
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, const std::string& what) {
  return Read(path, what, false);
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const std::string& what) {
  return Read(path, what, true);
}

}  // namespace pawl
