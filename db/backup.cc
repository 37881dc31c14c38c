#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "db/identity.h"
#include "db/schema.h"
#include "db/sqlite.h"

namespace pawl {
namespace {

constexpr int kBusyMilliseconds = 5000;

absl::Status AlreadyExists(const std::filesystem::path& file) {
  return absl::AlreadyExistsError(absl::StrCat(file.native(), " exists: nothing is overwritten; name a new file"));
}

int RenameToNew(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE); }

// The file system has no such call.
bool Unsupported(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM || error == EMLINK;
}

// errno; 0: done.
int GiveName(const char* part, const char* file, const NamingCalls& calls) {
  if ((calls.rename_to_new ? calls.rename_to_new(part, file) : RenameToNew(part, file)) == 0) return 0;
  if (!Unsupported(errno)) return errno;
  if ((calls.link ? calls.link(part, file) : link(part, file)) == 0) return unlink(part) == 0 ? 0 : errno;
  if (!Unsupported(errno)) return errno;
  const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  if (rename(part, file) == 0) return 0;
  const int error = errno;
  unlink(file);
  return error;
}

absl::Status CopyInto(const std::filesystem::path& database, const std::filesystem::path& copy) {
  auto from = SqliteConnection::Open(database, SqliteConnection::Mode::kRead, kBusyMilliseconds);
  if (!from.ok()) return from.status();
  if (absl::Status status = CheckIsPawlDatabase(from->get()); !status.ok()) return status;
  auto to = SqliteConnection::Open(copy, SqliteConnection::Mode::kWrite, kBusyMilliseconds);
  if (!to.ok()) return to.status();
  sqlite3_backup* backup = sqlite3_backup_init((*to)->handle(), "main", (*from)->handle(), "main");
  if (backup == nullptr) return (*to)->Error(sqlite3_extended_errcode((*to)->handle()));
  // In one step: a single read transaction, which in WAL mode holds up no writer. In several, every write in between
  // would restart the copy.
  const int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) return (*to)->Error(code);
  // The copy is one file, without a -wal.
  if (absl::Status status = (*to)->Execute("PRAGMA journal_mode = DELETE"); !status.ok()) return status;
  return MakeIdentity(to->get()).status();
}

}  // namespace

absl::Status PublishFile(const std::filesystem::path& part, const std::filesystem::path& file,
                         const NamingCalls& calls) {
  if (const int error = GiveName(part.c_str(), file.c_str(), calls); error != 0) {
    if (error == EEXIST) return AlreadyExists(file);
    return absl::UnavailableError(absl::StrCat("can't name the file ", file.native(), ": ", strerror(error)));
  }
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (synced) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't write folder ", folder.native(), ": ", strerror(errno)));
}

absl::StatusOr<std::filesystem::path> BeginFile(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) return AlreadyExists(file);
  std::filesystem::path part = file;
  part += ".part";
  std::filesystem::remove(part, error);
  // Nobody but the owner reads the secret that the database holds.
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::UnavailableError(absl::StrCat("can't make ", part.native(), ": ", strerror(errno)));
  close(fd);
  return part;
}

absl::Status BackUp(const std::filesystem::path& database, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(database, error)) {
    return absl::NotFoundError(absl::StrCat("there is no database ", database.native()));
  }
  const absl::StatusOr<std::filesystem::path> part = BeginFile(file);
  if (!part.ok()) return part.status();
  absl::Status status = CopyInto(database, *part);
  if (status.ok()) status = PublishFile(*part, file);
  if (!status.ok()) std::filesystem::remove(*part, error);
  return status;
}

}  // namespace pawl
