#include "db/sqlite_error.h"

#include <sqlite3.h>
#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pawl {

absl::Status SqliteError(int code, std::string_view detail, int system_error, std::string_view file) {
  const absl::string_view name(file.data(), file.size());
  std::string what = absl::StrCat(" (SQLite ", code, ": ", absl::string_view(detail.data(), detail.size()));
  if (system_error != 0) absl::StrAppend(&what, "; ", strerror(system_error));
  what += ")";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(
          "database ", name, " is locked by another process, a sqlite3 shell or a program that copies it: ",
          "end its transaction (`fuser -v ", name, "` shows who has it open) and try again", what));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::UnavailableError(
          absl::StrCat("database ", name, " is read-only: give this user write permission to the file and its folder, ",
                       "or mount the disk for writing, and try again", what));
    case SQLITE_FULL:
      return absl::UnavailableError(absl::StrCat("no space is left for database ", name,
                                                 ": free some on its disk and try again; nothing was written", what));
    case SQLITE_IOERR:
      return absl::UnavailableError(absl::StrCat("the disk failed under database ", name,
                                                 ": look at the disk (dmesg, df, the mount) and try again", what));
    case SQLITE_CANTOPEN:
      return absl::UnavailableError(absl::StrCat(
          "database ", name, " can't be opened: see that its folder exists and that this user may read and ",
          "write both", what));
    case SQLITE_CORRUPT:
      return absl::DataLossError(absl::StrCat(
          "database ", name, " is damaged: move it aside with its -wal and -shm files, and put the latest ",
          "backup in its place", what));
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(absl::StrCat(
          name, " is not a Pawl database: name another file; or, if it was one, move it aside with its -wal ",
          "and -shm files, and put the latest backup in its place", what));
    case SQLITE_CONSTRAINT:
      switch (code) {
        case SQLITE_CONSTRAINT_UNIQUE:
        case SQLITE_CONSTRAINT_PRIMARYKEY:
        case SQLITE_CONSTRAINT_ROWID:
          return absl::AlreadyExistsError(absl::StrCat("database ", name, " has such a row already", what));
        case SQLITE_CONSTRAINT_FOREIGNKEY:
          return absl::FailedPreconditionError(absl::StrCat(
              "database ", name, " lacks the row that a new one refers to: write its campaign first", what));
        case SQLITE_CONSTRAINT_TRIGGER:
          return absl::FailedPreconditionError(absl::StrCat("database ", name, " forbids the write", what));
      }
      return absl::InvalidArgumentError(absl::StrCat("database ", name, " forbids the value", what));
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::ResourceExhaustedError(absl::StrCat("too large for database ", name, " or for memory", what));
  }
  return absl::InternalError(absl::StrCat("database ", name, " failed", what));
}

}  // namespace pawl
