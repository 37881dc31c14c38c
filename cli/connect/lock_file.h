#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace pawl {

// The orchestrator that has a database open.
struct LockHolder {
  pid_t pid = 0;
  std::string address;  // empty: it does not serve yet
};

// DATABASE.lock, which a living orchestrator holds with flock(): its first line is the holder's process id, its second
// the address it listens on.
std::filesystem::path LockFilePath(const std::filesystem::path& database);

// Nothing: nobody has the database open. What an orchestrator that is gone left in the file does not count.
std::optional<LockHolder> FindLockHolder(const std::filesystem::path& database);

}  // namespace pawl
