#include "db/open_files.h"

#include <errno.h>
#include <sys/stat.h>

#include <system_error>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

absl::Status Lost(const std::filesystem::path& file, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(
      file.native(), " ", what, " while the orchestrator was running: nothing is stored any more, and it ends. ",
      "Put the database back with the -wal beside it, or the latest backup without one, and start it again"));
}

}  // namespace

OpenFiles::OpenFiles(const std::filesystem::path& database) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(database, error);
  for (const std::filesystem::path& path :
       {database, std::filesystem::path(real.native() + "-wal"), std::filesystem::path(real.native() + "-shm")}) {
    struct stat found = {};
    if (stat(path.c_str(), &found) == 0) files_.push_back({path, found.st_dev, found.st_ino});
  }
}

absl::Status OpenFiles::Check() {
  absl::MutexLock lock(&mutex_);
  if (found_.ok()) found_ = Look();
  return found_;
}

absl::Status OpenFiles::Look() {
  for (const File& file : files_) {
    struct stat now = {};
    if (stat(file.path.c_str(), &now) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Lost(file.path, "was removed or moved");
      continue;  // a disk that does not answer is found out by the next write
    }
    if (now.st_dev != file.device || now.st_ino != file.inode) return Lost(file.path, "was replaced");
    if (&file != &files_.front()) continue;
    if (now.st_size < longest_) {
      return Lost(file.path, absl::StrCat("was cut from ", longest_, " to ", now.st_size, " bytes"));
    }
    longest_ = now.st_size;
  }
  return absl::OkStatus();
}

}  // namespace pawl
