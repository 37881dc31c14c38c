#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <vector>

#include "absl/status/status.h"

namespace pawl {

// The files of an open database, FILE, FILE-wal and FILE-shm, as their names led to them when it was opened. What
// SQLite has open stays open when a file is removed, moved or replaced: a commit would then reach a file that nobody
// finds again. Thread-safe.
class OpenFiles {
 public:
  explicit OpenFiles(const std::filesystem::path& database);

  // FAILED_PRECONDITION: a name leads to another file or to none, or the database has become shorter. That stays.
  absl::Status Check();

 private:
  struct File {
    std::filesystem::path path;
    dev_t device;
    ino_t inode;
  };
  absl::Status Look();

  std::mutex mutex_;         // guards what follows
  std::vector<File> files_;  // the database comes first
  int64_t longest_ = 0;      // of the database; nothing here makes it shorter
  absl::Status found_;
};

}  // namespace pawl
