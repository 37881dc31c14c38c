#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pawl {

// Threads that build side by side. They live as long as this object: a builder's process ends with the thread that
// started it.
class BuildCrew {
 public:
  explicit BuildCrew(int threads);
  ~BuildCrew();

  // Runs all of them and waits.
  void Run(std::vector<std::function<void()>> jobs);

 private:
  void Work();

  absl::Mutex mutex_;
  std::vector<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;  // queued or running
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl
