#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// DATABASE.lock: its flock says that an orchestrator owns the database. Its text is for people and for the command
// line: the owner's process id in the first line, the address it listens on in the second, once it does. The file stays
// when the owner is gone (removing it would let two owners each lock their own), so its text counts only while it is
// locked.
class DatabaseLock {
 public:
  // FAILED_PRECONDITION: another process has it; the message says which. UNAVAILABLE: the file can't be made.
  static absl::StatusOr<std::unique_ptr<DatabaseLock>> Acquire(const std::filesystem::path& database);
  ~DatabaseLock();
  DatabaseLock(const DatabaseLock&) = delete;

  absl::Status SetAddress(const std::string& address);

 private:
  explicit DatabaseLock(int fd, std::filesystem::path file) : fd_(fd), file_(std::move(file)) {}

  int fd_;
  std::filesystem::path file_;
};

// Where the orchestrator that owns this database listens; nothing if none does, or not yet.
std::optional<std::string> AddressOfOwner(const std::filesystem::path& database);

}  // namespace pawl
