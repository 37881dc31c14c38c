#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// Copies a Pawl database that an orchestrator, here or in another process, may be writing to. The copy is consistent:
// of one moment, whole transactions. It has its name only once it is complete and on disk (before that it is
// FILE.part). ALREADY_EXISTS: the file is there. NOT_FOUND: no such database.
absl::Status BackUp(const std::filesystem::path& database, const std::filesystem::path& file);

// The two ends of that: makes FILE.part, empty and for this user only; gives it its name, which is on disk, too, when
// this returns. Neither overwrites a file (ALREADY_EXISTS).
absl::StatusOr<std::filesystem::path> BeginFile(const std::filesystem::path& file);
//
// Not every file system can rename without replacing (NFS can't): a hard link is made there, and where there are none
// the name is taken with an empty file first, which a crash in that moment leaves behind. `calls`: a test's way to such
// a file system.
struct NamingCalls {
  std::function<int(const char* from, const char* to)> rename_to_new;  // as renameat2 with RENAME_NOREPLACE
  std::function<int(const char* from, const char* to)> link;
};
absl::Status PublishFile(const std::filesystem::path& part, const std::filesystem::path& file,
                         const NamingCalls& calls = {});

}  // namespace pawl
