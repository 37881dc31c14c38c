#pragma once

#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pawl {

// A condition variable of an absl::Mutex whose deadlines go by the monotonic clock. absl::CondVar waits by the time of
// day: when somebody sets the clock back by an hour, 200 ms become an hour. Thread-safe.
class SteadyCondition {
 public:
  // May return for no reason: wait in a loop.
  void Wait(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // False: the deadline has passed.
  bool WaitUntil(absl::Mutex* mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace pawl
