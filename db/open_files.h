#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace pawl {

// The files of an open database, FILE, FILE-wal and FILE-shm, as their names led to them when it was opened. What
// SQLite has open stays open when a file is removed, moved or replaced: a commit would then reach a file that nobody
// finds again. Thread-safe. Must outlive the connections: closing a descriptor of -shm drops SQLite's locks.
class OpenFiles {
 public:
  // `descriptor`: of the database, which must stay open as long as this.
  OpenFiles(const std::filesystem::path& database, int descriptor);
  ~OpenFiles();
  OpenFiles(const OpenFiles&) = delete;

  // FAILED_PRECONDITION: a name leads to another file or to none, a file is shorter than its content, or the database's
  // header is that of a copy or of an earlier time (it was written over). That stays.
  // Where another program made the database smaller (VACUUM), it is no shorter than its content.
  absl::Status Check();

 private:
  struct File {
    std::filesystem::path path;
    dev_t device;
    ino_t inode;
  };
  // What the -wal holds, as SQLite's index of it (-shm) says.
  struct Index {
    int64_t page_bytes, frames, pages;  // pages: of the database, those in the -wal included
  };
  // Of the database's header.
  struct Header {
    bool uses_wal;
    uint32_t changes;  // a counter, never set back
  };
  absl::Status Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing: what it saw does not belong together, and it is not the last try.
  std::optional<absl::Status> LookOnce(bool last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Index> ReadIndex() const;
  std::optional<Header> ReadHeader() const;

  const int database_;  // descriptor
  int index_ = -1;      // descriptor of -shm
  absl::Mutex mutex_;
  std::vector<File> files_ ABSL_GUARDED_BY(mutex_);   // the database comes first
  int64_t length_ ABSL_GUARDED_BY(mutex_) = 0;        // of the database, when it was last looked at
  int64_t index_length_ ABSL_GUARDED_BY(mutex_) = 0;  // of the -shm, which only grows
  Header header_ ABSL_GUARDED_BY(mutex_) = {};        // when it was last looked at
  absl::Status found_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
