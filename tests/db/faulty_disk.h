#pragma once

#include <memory>

namespace pawl {

// While it lives, every database that is opened lies on a disk that fails when it is told to. One at a time.
class FaultyDisk {
 public:
  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;

  // SQLite's result codes; SQLITE_OK: works.
  void FailWrites(int code);
  void FailSyncs(int code);
  void FailReads(int code);
  // So many operations of the code's kind (write, sync, read, truncate) from now; SQLITE_FULL is a write's.
  void FailAfter(int operations, int code);
  void Heal();

  // Writes to write-ahead logs since they were last forced to the disk: what a power cut would lose.
  int unsynced() const;
};

}  // namespace pawl
