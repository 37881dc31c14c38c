#include "db/damage_check.h"

#include <sqlite3.h>

#include "db/schema.h"

namespace pawl {

absl::StatusOr<std::unique_ptr<DamageCheck>> DamageCheck::Start(const std::filesystem::path& file,
                                                                int busy_milliseconds, std::function<void()> begins) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> connection =
      SqliteConnection::Open(file, SqliteConnection::Mode::kRead, busy_milliseconds);
  if (!connection.ok()) return connection.status();
  std::unique_ptr<DamageCheck> check(new DamageCheck(*std::move(connection)));
  check->thread_ = std::thread([check = check.get(), begins = std::move(begins)] {
    if (begins) begins();
    absl::Status found = CheckIsUndamaged(check->connection_.get());
    absl::MutexLock lock(&check->mutex_);
    check->found_ = std::move(found);
    check->ended_.SignalAll();
  });
  return check;
}

DamageCheck::~DamageCheck() {
  // The one call that another thread may make on a connection. It has no effect before the statement runs.
  while (!Wait(std::chrono::milliseconds(0))) {
    sqlite3_interrupt(connection_->handle());
    (void)Wait(std::chrono::milliseconds(10));
  }
  thread_.join();
}

std::optional<absl::Status> DamageCheck::Found() { return Wait(std::chrono::milliseconds(0)); }

std::optional<absl::Status> DamageCheck::Wait(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  absl::MutexLock lock(&mutex_);
  while (!found_ && ended_.WaitUntil(&mutex_, deadline)) {
  }
  return found_;
}

}  // namespace pawl
