#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"
#include "db/sqlite.h"

namespace pawl {

// quick_check of a whole database, on a thread and a connection of its own: it reads every page, which takes as long as
// the disk takes, while others read. Thread-safe.
class DamageCheck {
 public:
  // `begins` (where it is not null) is called on the thread before the first page is read.
  static absl::StatusOr<std::unique_ptr<DamageCheck>> Start(const std::filesystem::path& file, int busy_milliseconds,
                                                            std::function<void()> begins);
  // Ends a check that is under way.
  ~DamageCheck();
  DamageCheck(const DamageCheck&) = delete;

  // What it found: OK, or DATA_LOSS, or why it could not be made. Nothing: it goes on.
  std::optional<absl::Status> Found();
  std::optional<absl::Status> Wait(std::chrono::milliseconds patience);

 private:
  explicit DamageCheck(std::unique_ptr<SqliteConnection> connection) : connection_(std::move(connection)) {}

  std::unique_ptr<SqliteConnection> connection_;  // of the thread
  absl::Mutex mutex_;
  SteadyCondition ended_;
  std::optional<absl::Status> found_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pawl
