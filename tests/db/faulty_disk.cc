#include "tests/db/faulty_disk.h"

#include <sqlite3.h>

#include <atomic>
#include <new>
#include <string_view>

namespace pawl {
namespace {

std::atomic<int> write_code, sync_code, read_code, unsynced_writes;
std::atomic<int> later_code, operations_left;
sqlite3_vfs* real_vfs;
sqlite3_vfs vfs;
sqlite3_io_methods methods;

// SQLite allocates szOsFile bytes: this, and behind it the real file.
struct File {
  sqlite3_file base;
  bool wal;
};

sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1); }

// A method of the real file under the same name.
template <auto Method, typename... Arguments>
int Forward(sqlite3_file* file, Arguments... arguments) {
  return (Real(file)->pMethods->*Method)(Real(file), arguments...);
}

// What FailAfter has for an operation that would fail with this code.
int Later(int code, int or_code = SQLITE_OK) {
  const int later = later_code;
  if (later == SQLITE_OK || (later != code && later != or_code)) return SQLITE_OK;
  return operations_left-- > 0 ? SQLITE_OK : later;
}

int Read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  if (read_code != SQLITE_OK) return read_code;
  if (const int code = Later(SQLITE_IOERR_READ); code != SQLITE_OK) return code;
  return Forward<&sqlite3_io_methods::xRead>(file, data, size, offset);
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  if (write_code != SQLITE_OK) return write_code;
  if (const int code = Later(SQLITE_IOERR_WRITE, SQLITE_FULL); code != SQLITE_OK) return code;
  if (reinterpret_cast<File*>(file)->wal) ++unsynced_writes;
  return Forward<&sqlite3_io_methods::xWrite>(file, data, size, offset);
}

int Sync(sqlite3_file* file, int flags) {
  if (sync_code != SQLITE_OK) return sync_code;
  if (const int code = Later(SQLITE_IOERR_FSYNC); code != SQLITE_OK) return code;
  if (reinterpret_cast<File*>(file)->wal) unsynced_writes = 0;
  return Forward<&sqlite3_io_methods::xSync>(file, flags);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = Later(SQLITE_IOERR_TRUNCATE); code != SQLITE_OK) return code;
  return Forward<&sqlite3_io_methods::xTruncate>(file, size);
}

void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  File* mine = new (file) File{};
  mine->wal = (flags & SQLITE_OPEN_WAL) != 0;
  const int code = real_vfs->xOpen(real_vfs, name, Real(file), flags, out_flags);
  if (code == SQLITE_OK) file->pMethods = &methods;
  return code;
}

}  // namespace

FaultyDisk::FaultyDisk() {
  Heal();
  unsynced_writes = 0;
  real_vfs = sqlite3_vfs_find(nullptr);
  vfs = *real_vfs;
  vfs.zName = "faulty";
  vfs.szOsFile = sizeof(File) + real_vfs->szOsFile;
  vfs.xOpen = Open;
  methods = {.iVersion = 2,
             .xClose = Forward<&sqlite3_io_methods::xClose>,
             .xRead = Read,
             .xWrite = Write,
             .xTruncate = Truncate,
             .xSync = Sync,
             .xFileSize = Forward<&sqlite3_io_methods::xFileSize>,
             .xLock = Forward<&sqlite3_io_methods::xLock>,
             .xUnlock = Forward<&sqlite3_io_methods::xUnlock>,
             .xCheckReservedLock = Forward<&sqlite3_io_methods::xCheckReservedLock>,
             .xFileControl = Forward<&sqlite3_io_methods::xFileControl>,
             .xSectorSize = Forward<&sqlite3_io_methods::xSectorSize>,
             .xDeviceCharacteristics = Forward<&sqlite3_io_methods::xDeviceCharacteristics>,
             .xShmMap = Forward<&sqlite3_io_methods::xShmMap>,
             .xShmLock = Forward<&sqlite3_io_methods::xShmLock>,
             .xShmBarrier = ShmBarrier,
             .xShmUnmap = Forward<&sqlite3_io_methods::xShmUnmap>,
             .xFetch = nullptr,
             .xUnfetch = nullptr};
  sqlite3_vfs_register(&vfs, /*makeDflt=*/1);
}

FaultyDisk::~FaultyDisk() {
  sqlite3_vfs_unregister(&vfs);
  sqlite3_vfs_register(real_vfs, /*makeDflt=*/1);
}

void FaultyDisk::FailWrites(int code) { write_code = code; }
void FaultyDisk::FailSyncs(int code) { sync_code = code; }
void FaultyDisk::FailReads(int code) { read_code = code; }

void FaultyDisk::FailAfter(int operations, int code) {
  operations_left = operations;
  later_code = code;
}

void FaultyDisk::Heal() { write_code = sync_code = read_code = later_code = SQLITE_OK; }

int FaultyDisk::unsynced() const { return unsynced_writes; }

}  // namespace pawl
