#include "base/sync/steady_condition.h"

namespace pawl {
namespace {

// What std::condition_variable_any unlocks while it waits.
class Lockable {
 public:
  explicit Lockable(absl::Mutex* mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Unlock(); }

 private:
  absl::Mutex* const mutex_;
};

}  // namespace

void SteadyCondition::Wait(absl::Mutex* mutex) {
  Lockable lockable(mutex);
  condition_.wait(lockable);
}

bool SteadyCondition::WaitUntil(absl::Mutex* mutex, std::chrono::steady_clock::time_point deadline) {
  Lockable lockable(mutex);
  return condition_.wait_until(lockable, deadline) == std::cv_status::no_timeout;
}

}  // namespace pawl
