#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

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
  absl::Status Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::vector<File> files_ ABSL_GUARDED_BY(mutex_);  // the database comes first
  int64_t longest_ ABSL_GUARDED_BY(mutex_) = 0;      // of the database; nothing here makes it shorter
  absl::Status found_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
