#include "db/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

// Beside the file itself, not beside a link to it: a second name is no second database.
std::filesystem::path LockFileOf(const std::filesystem::path& database) {
  std::error_code error;
  std::filesystem::path file = std::filesystem::weakly_canonical(database, error);
  if (error) file = database;
  file += ".lock";
  return file;
}

bool Lock(int fd, int kind) {
  int code;
  do {
    code = flock(fd, kind | LOCK_NB);
  } while (code != 0 && errno == EINTR);
  return code == 0;
}

// Process id and address; empty where they are not written.
std::pair<std::string, std::string> ReadOwner(int fd) {
  char text[4096];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::vector<std::string> lines = absl::StrSplit(absl::string_view(text, size < 0 ? 0 : size), '\n');
  lines.resize(2);
  return {lines[0], lines[1]};
}

absl::Status WriteOwner(int fd, const std::filesystem::path& file, const std::string& address) {
  const std::string text = absl::StrCat(getpid(), "\n", address, "\n");
  if (pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) || ftruncate(fd, text.size()) != 0) {
    return absl::UnavailableError(absl::StrCat("can't write ", file.native(), ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatabaseLock>> DatabaseLock::Acquire(const std::filesystem::path& database) {
  std::filesystem::path file = LockFileOf(database);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat("can't make ", file.native(), ": ", strerror(errno),
                                               "; see that this user may write to the folder"));
  }
  std::unique_ptr<DatabaseLock> lock(new DatabaseLock(fd, std::move(file)));
  // AddressOfOwner holds the lock for a moment.
  for (int tries = 0; !Lock(fd, LOCK_EX); ++tries) {
    if (tries == 20) {
      const auto [pid, address] = ReadOwner(fd);
      close(std::exchange(lock->fd_, -1));
      return absl::FailedPreconditionError(
          absl::StrCat("database ", database.native(), " is in use by another orchestrator (process ",
                       pid.empty() ? "unknown" : pid, address.empty() ? "" : ", listening on ", address,
                       "): use that one, or end it first, or name another database"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (absl::Status status = WriteOwner(fd, lock->file_, ""); !status.ok()) return status;
  return lock;
}

DatabaseLock::~DatabaseLock() {
  if (fd_ < 0) return;
  (void)!ftruncate(fd_, 0);
  close(fd_);
}

absl::Status DatabaseLock::SetAddress(const std::string& address) { return WriteOwner(fd_, file_, address); }

std::optional<std::string> AddressOfOwner(const std::filesystem::path& database) {
  const int fd = open(LockFileOf(database).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> address;
  if (!Lock(fd, LOCK_SH) && errno == EWOULDBLOCK) {
    address = ReadOwner(fd).second;
    if (address->empty()) address.reset();
  }
  close(fd);
  return address;
}

}  // namespace pawl
