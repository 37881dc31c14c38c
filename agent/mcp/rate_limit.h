#pragma once

#include <chrono>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pawl {

// Lets so many calls a second through, and a burst of as many more after a pause. Thread-safe.
class RateLimit {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  RateLimit(double per_second, double burst, Clock clock);

  // False: not now.
  bool Take();

 private:
  const double per_second_;
  const double burst_;
  const Clock clock_;
  absl::Mutex mutex_;
  double left_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
