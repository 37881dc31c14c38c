#include "db/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

absl::Status Lost(const std::filesystem::path& file, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(
      file.native(), " ", what, " while the orchestrator was running: nothing is stored any more, and it ends. ",
      "Put the database back with the -wal beside it, or the latest backup without one, and start it again"));
}

// Looks at files that are being written meanwhile.
constexpr int kTries = 5;
constexpr auto kPause = std::chrono::milliseconds(1);

// Of the -wal's file format.
constexpr int64_t kWalHeader = 32;
constexpr int64_t kFrameHeader = 24;

// The beginning of SQLite's -shm file, in the machine's byte order (walformat.html, "The WAL-Index Header"): the same
// twice, since it is read without a lock.
struct IndexHeader {
  uint32_t version, unused, changes;
  uint8_t initialized, big_endian;
  uint16_t page_bytes;  // 1: 65536
  uint32_t frames, pages, checksums[2], salts[2], own_checksum[2];
};
static_assert(sizeof(IndexHeader) == 48);

}  // namespace

OpenFiles::OpenFiles(const std::filesystem::path& database, int descriptor) : database_(descriptor) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(database, error);
  const std::filesystem::path index = real.native() + "-shm";
  for (const std::filesystem::path& path : {database, std::filesystem::path(real.native() + "-wal"), index}) {
    struct stat found = {};
    const bool there = path == database ? fstat(descriptor, &found) == 0 : stat(path.c_str(), &found) == 0;
    if (there) files_.push_back({path, found.st_dev, found.st_ino});
  }
  index_ = open(index.c_str(), O_RDONLY | O_CLOEXEC);
}

OpenFiles::~OpenFiles() {
  if (index_ >= 0) close(index_);
}

absl::Status OpenFiles::Check() {
  absl::MutexLock lock(&mutex_);
  if (found_.ok()) found_ = Look();
  return found_;
}

// Nothing: it is being written.
std::optional<OpenFiles::Index> OpenFiles::ReadIndex() const {
  IndexHeader headers[2];
  if (index_ < 0 || pread(index_, headers, sizeof headers, 0) != sizeof headers) return std::nullopt;
  if (memcmp(&headers[0], &headers[1], sizeof headers[0]) != 0 || headers[0].initialized == 0) return std::nullopt;
  const int64_t page = headers[0].page_bytes;
  return Index{page == 1 ? 65536 : page, headers[0].frames, headers[0].pages};
}

// Nothing: it can't be read.
std::optional<OpenFiles::Header> OpenFiles::ReadHeader() const {
  uint8_t bytes[28];  // fileformat2.html, "The Database Header"
  if (pread(database_, bytes, sizeof bytes, 0) != sizeof bytes) return std::nullopt;
  uint32_t changes = 0;
  for (int i = 24; i < 28; ++i) changes = changes << 8 | bytes[i];
  return Header{bytes[18] == 2 && bytes[19] == 2, changes};
}

absl::Status OpenFiles::Look() {
  for (int tries = 1;; ++tries) {
    const std::optional<absl::Status> found = LookOnce(/*last=*/tries == kTries);
    if (found) return *found;
    std::this_thread::sleep_for(kPause);
  }
}

std::optional<absl::Status> OpenFiles::LookOnce(bool last) {
  const std::optional<Index> before = ReadIndex();
  std::vector<int64_t> lengths;
  for (const File& file : files_) {
    struct stat now = {};
    if (stat(file.path.c_str(), &now) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Lost(file.path, "was removed or moved");
      return absl::OkStatus();  // a disk that does not answer is found out by the next write
    }
    if (now.st_dev != file.device || now.st_ino != file.inode) return Lost(file.path, "was replaced");
    lengths.push_back(now.st_size);
  }
  // Lengths and index belong together where nothing was written in between.
  const std::optional<Index> after = ReadIndex();
  const bool steady = before && after && memcmp(&*before, &*after, sizeof(Index)) == 0;
  if (lengths.size() < 3) return absl::OkStatus();
  if (lengths[2] < index_length_) {  // what SQLite has mapped of it can't be read any more
    return Lost(files_[2].path, absl::StrCat("was cut from ", index_length_, " to ", lengths[2], " bytes"));
  }
  index_length_ = lengths[2];
  if (lengths[0] < length_ && !steady && !last) return std::nullopt;
  if (lengths[0] < length_ && (!steady || lengths[0] < after->pages * after->page_bytes)) {
    return Lost(files_[0].path, absl::StrCat("was cut from ", length_, " to ", lengths[0], " bytes"));
  }
  length_ = lengths[0];
  if (const std::optional<Header> header = ReadHeader()) {
    const bool other = (header_.uses_wal && !header->uses_wal) || header->changes < header_.changes;
    if (other && !last) return std::nullopt;  // it may be half written
    if (other) return Lost(files_[0].path, "was overwritten with another database or an earlier copy");
    header_ = *header;
  }
  if (!steady || after->frames == 0) return absl::OkStatus();
  const int64_t written = kWalHeader + after->frames * (kFrameHeader + after->page_bytes);
  if (lengths[1] >= written) return absl::OkStatus();
  return Lost(files_[1].path, absl::StrCat("was cut to ", lengths[1], " of ", written, " bytes"));
}

}  // namespace pawl
