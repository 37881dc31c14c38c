#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// Says that this process owns a database. Two locks, both with flock(), which POSIX locks such as SQLite's neither see
// nor disturb:
// - of the database file itself, so that no other name of it (a hard link, a new name after a rename) and no missing
//   lock file lets a second owner in;
// - of DATABASE.lock, so that nobody starts a new database under a name whose -wal is still being written.
//
// The text of DATABASE.lock is for people, the command line and the next owner. While it is locked: the owner's process
// id, the address it listens on (once it does), the inodes of the database and of its -wal. After an owner that closed
// the database: `stopped`, and how it left the file. In both cases `copied` follows while the file is another than the
// owner before had, and its leases were not ended yet; then the identity that the database has (db/identity.h), or two
// while it is not known which of them the file itself has. The file stays when the owner is gone.
class DatabaseLock {
 public:
  // Makes the database file if it is not there, empty and for this user only. ALREADY_EXISTS: another process has it,
  // the message says which. FAILED_PRECONDITION: the database is missing, empty or replaced beside a -wal that holds
  // its changes; or it has several names. UNAVAILABLE: a file can't be made or opened.
  static absl::StatusOr<std::unique_ptr<DatabaseLock>> Acquire(const std::filesystem::path& database);
  // Leaves the files to the next owner. Must come after the last connection is closed: closing a descriptor of the
  // database drops SQLite's locks.
  ~DatabaseLock();
  DatabaseLock(const DatabaseLock&) = delete;

  // Of the database file, for reading; it stays open as long as this.
  int database_descriptor() const { return database_fd_; }

  absl::Status SetAddress(const std::string& address);
  // Notes which -wal belongs to the database, once there is one.
  absl::Status NoteWal();

  // The last owner closed the database, and the file is as it was left: same inode, length and time of change.
  bool closed_before() const { return closed_before_; }
  // The file is the one that the last owner had: of the identity that was noted, and as it was left, or, where that
  // owner was killed, beside the -wal that it wrote. Not after a restore, a copy or a move, nor where it was never
  // noted, until NoteSame.
  bool same_file() const { return same_file_; }
  // What follows from another file was done.
  absl::Status NoteSame();
  // One, or two with a space between them.
  absl::Status NoteIdentities(const std::string& identities);
  // To be called once every connection is closed and nothing is wrong with the database.
  absl::Status NoteClosed();

 private:
  DatabaseLock(int fd, std::filesystem::path file, std::filesystem::path database)
      : fd_(fd), file_(std::move(file)), database_(std::move(database)) {}

  absl::Status TakeDatabase();
  absl::Status Write(const std::string& text);
  absl::Status WriteNote(const std::string& owner, const std::string& what);

  int fd_;  // of DATABASE.lock
  int database_fd_ = -1;
  std::filesystem::path file_;
  std::filesystem::path database_;  // not a link
  bool closed_before_ = false;
  bool same_file_ = true;
  std::string address_;
  std::string inodes_;
  std::string identities_;
};

// Where the orchestrator that owns this database listens; nothing if none does, or not yet.
std::optional<std::string> AddressOfOwner(const std::filesystem::path& database);

}  // namespace pawl
