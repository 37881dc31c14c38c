#include "db/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/identity.h"

namespace pawl {
namespace {

constexpr char kStopped[] = "stopped";
constexpr char kCopied[] = "copied";
constexpr int kLockTries = 20;  // AddressOfOwner holds a lock for a moment
constexpr auto kLockPause = std::chrono::milliseconds(5);

// The file itself, not a link to it: SQLite names the -wal after it, and a second name is no second database.
std::filesystem::path Resolved(const std::filesystem::path& database) {
  std::error_code error;
  std::filesystem::path file = std::filesystem::weakly_canonical(database, error);
  return error ? database : file;
}

std::filesystem::path Beside(std::filesystem::path database, const char* suffix) { return database += suffix; }

std::optional<struct stat> StatOf(const std::filesystem::path& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0) return std::nullopt;
  return found;
}

bool Lock(int fd, int kind) {
  int code;
  do {
    code = flock(fd, kind | LOCK_NB);
  } while (code != 0 && errno == EINTR);
  return code == 0;
}

// False, with errno EWOULDBLOCK: another process has it. Any other errno: this file system has no such locks.
bool LockPatiently(int fd) {
  for (int tries = 0; !Lock(fd, LOCK_EX); ++tries) {
    if (tries == kLockTries || errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(kLockPause);
  }
  return true;
}

// Process id or `stopped`, address, what else is noted, `copied`, identities; empty where they are not written.
std::vector<std::string> ReadLines(int fd) {
  char text[4096];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::vector<std::string> lines = absl::StrSplit(absl::string_view(text, size < 0 ? 0 : size), '\n');
  lines.resize(5);
  return lines;
}

// Of the process that has the file locked, as the kernel lists it; empty: it does not say.
std::string HolderOf(ino_t inode) {
  std::ifstream locks("/proc/locks");
  const std::string file = absl::StrCat(":", inode);
  for (std::string line; std::getline(locks, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() > 5 && words[1] == "FLOCK" && absl::EndsWith(words[5], file) && words[4] != "0") return words[4];
  }
  return "";
}

absl::Status InUse(const std::filesystem::path& database, const std::string& pid, const std::string& address) {
  return absl::AlreadyExistsError(absl::StrCat(
      "database ", database.native(), " is in use by another orchestrator (process ", pid.empty() ? "unknown" : pid,
      address.empty() ? "" : ", listening on ", address, "): use that one, or end it first, or name another database"));
}

std::string InodesText(const struct stat& database, const struct stat& wal) {
  return absl::StrCat(database.st_ino, " ", wal.st_ino);
}

std::string LeftText(const struct stat& database) {
  return absl::StrCat(database.st_ino, " ", database.st_size, " ", database.st_mtim.tv_sec, " ",
                      database.st_mtim.tv_nsec);
}

// Whether the file is a copy of the database whose identities were noted.
bool IsCopy(const std::filesystem::path& database, const std::string& noted) {
  if (noted.empty()) return false;
  const std::string identity = IdentityInFile(database);
  return !identity.empty() && !absl::StrContains(noted, identity);
}

// The database's header has 1 for a rollback journal and 2 for a -wal, twice (fileformat2.html, offset 18). Nobody has
// the database open yet in this process: closing a descriptor would drop SQLite's locks.
bool UsesNoWal(const std::filesystem::path& database) {
  char header[20] = {};
  std::ifstream file(database, std::ios::binary);
  return file.read(header, sizeof header) && header[18] == 1 && header[19] == 1;
}

// SQLite would take a -wal that is not the database's for its changes, or remove it.
absl::Status CheckWal(const std::filesystem::path& database, const std::vector<std::string>& noted, bool copy) {
  const std::filesystem::path log = Beside(database, "-wal");
  const std::optional<struct stat> wal = StatOf(log);
  if (!wal || wal->st_size == 0) return absl::OkStatus();
  const std::optional<struct stat> file = StatOf(database);
  const std::string aside = absl::StrCat("or, to continue without those changes, move ", log.native(), " and ",
                                         Beside(database, "-shm").filename().native(), " aside");
  if (!file || file->st_size == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "database ", database.native(), " is ", file ? "empty" : "missing", ", but ", log.native(), " beside it holds ",
        wal->st_size, " bytes of its latest changes: put the database file back in its place; ", aside));
  }
  const std::vector<std::string> inodes = absl::StrSplit(noted[2], ' ');
  const bool same_wal = inodes.size() == 2 && inodes[1] == absl::StrCat(wal->st_ino);
  if (noted[0] != kStopped && same_wal && (copy || inodes[0] != absl::StrCat(file->st_ino))) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database.native(), " was replaced, but ", log.native(),
                     " holds changes of the file before it: put that file back in its place; ", aside));
  }
  // A database whose changes go to a -wal says so in its header; a backup does not.
  if (UsesNoWal(database)) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database.native(), " is a copy that has no write-ahead log, but ", log.native(),
                     " holds changes of another file that was here: put that file back in its place; ", aside));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatabaseLock>> DatabaseLock::Acquire(const std::filesystem::path& named) {
  std::filesystem::path database = Resolved(named);
  std::filesystem::path file = Beside(database, ".lock");
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat("can't make ", file.native(), ": ", strerror(errno),
                                               "; check that this user may write to the folder"));
  }
  std::unique_ptr<DatabaseLock> lock(new DatabaseLock(fd, std::move(file), std::move(database)));
  if (!LockPatiently(fd)) {
    const std::vector<std::string> owner = ReadLines(fd);
    return InUse(named, owner[0], owner[1]);
  }
  const std::vector<std::string> before = ReadLines(fd);
  const bool copy = IsCopy(lock->database_, before[4]);
  if (absl::Status status = CheckWal(lock->database_, before, copy); !status.ok()) return status;
  if (absl::Status status = lock->TakeDatabase(); !status.ok()) return status;
  const std::optional<struct stat> found = StatOf(lock->database_);
  const std::optional<struct stat> wal = StatOf(Beside(lock->database_, "-wal"));
  lock->closed_before_ = found && before[0] == kStopped && before[2] == LeftText(*found) && (!wal || wal->st_size == 0);
  const std::string before_wal = found ? absl::StrCat(found->st_ino, " 0") : "";  // the owner had not noted one yet
  const bool killed_here =
      found && before[0] != kStopped && (before[2] == before_wal || (wal && before[2] == InodesText(*found, *wal)));
  const bool is_new = found && found->st_size == 0;
  lock->same_file_ = is_new || (before[3] != kCopied && !copy && (lock->closed_before_ || killed_here));
  if (lock->same_file_) lock->identities_ = before[4];
  if (lock->same_file_ && !is_new) lock->inodes_ = killed_here ? before[2] : before_wal;
  // On the disk before anything is written: after a power cut nobody may read that the database was closed.
  if (absl::Status status = lock->SetAddress(""); !status.ok()) return status;
  if (fsync(fd) != 0) {
    return absl::UnavailableError(absl::StrCat("can't write ", lock->file_.native(), ": ", strerror(errno)));
  }
  return lock;
}

absl::Status DatabaseLock::TakeDatabase() {
  // Before SQLite would make it for all to read: it holds the secret.
  database_fd_ = open(database_.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  struct stat found = {};
  if (database_fd_ < 0 || fstat(database_fd_, &found) != 0) {
    return absl::UnavailableError(absl::StrCat("database ", database_.native(), " can't be opened: ", strerror(errno),
                                               "; check that this user may read and write it"));
  }
  // Where the file system can't lock a file that is open for reading (NFS), the side file alone keeps others out.
  if (!LockPatiently(database_fd_) && errno == EWOULDBLOCK) return InUse(database_, HolderOf(found.st_ino), "");
  if (found.st_nlink > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database_.native(), " has ", found.st_nlink,
                     " names (hard links): its -wal belongs to one of them only; remove the others (find -samefile)"));
  }
  return absl::OkStatus();
}

DatabaseLock::~DatabaseLock() {
  if (database_fd_ >= 0) close(database_fd_);
  close(fd_);
}

absl::Status DatabaseLock::Write(const std::string& text) {
  if (pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(fd_, text.size()) != 0) {
    return absl::UnavailableError(absl::StrCat("can't write ", file_.native(), ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status DatabaseLock::WriteNote(const std::string& owner, const std::string& what) {
  std::string text =
      absl::StrCat(owner, "\n", address_, "\n", what, "\n", same_file_ ? "" : kCopied, "\n", identities_);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return Write(absl::StrCat(text, "\n"));
}

absl::Status DatabaseLock::SetAddress(const std::string& address) {
  address_ = address;
  return WriteNote(absl::StrCat(getpid()), inodes_);
}

absl::Status DatabaseLock::NoteIdentities(const std::string& identities) {
  identities_ = identities;
  return SetAddress(address_);
}

absl::Status DatabaseLock::NoteSame() {
  same_file_ = true;
  return SetAddress(address_);
}

absl::Status DatabaseLock::NoteWal() {
  const std::optional<struct stat> database = StatOf(database_);
  const std::optional<struct stat> wal = StatOf(Beside(database_, "-wal"));
  if (!database || !wal) return absl::OkStatus();
  inodes_ = InodesText(*database, *wal);
  return SetAddress(address_);
}

absl::Status DatabaseLock::NoteClosed() {
  const std::optional<struct stat> database = StatOf(database_);
  if (!database) return absl::OkStatus();
  address_.clear();
  return WriteNote(kStopped, LeftText(*database));
}

std::optional<std::string> AddressOfOwner(const std::filesystem::path& database) {
  const int fd = open(Beside(Resolved(database), ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> address;
  if (!Lock(fd, LOCK_SH) && errno == EWOULDBLOCK) {
    address = ReadLines(fd)[1];
    if (address->empty()) address.reset();
  }
  close(fd);
  return address;
}

}  // namespace pawl
