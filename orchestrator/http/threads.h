#pragma once

#include <httplib.h>

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pawl {

// So many threads for connections, and room for as many that wait; who comes then waits to be accepted. Thread-safe.
class HttpThreads final : public httplib::TaskQueue {
 public:
  HttpThreads(int threads, int waiting);
  ~HttpThreads() override;

  void enqueue(std::function<void()> connection) override;
  void shutdown() override;

  // A connection waits for a thread.
  bool HasWaiting() const;

 private:
  void Work();

  const size_t waiting_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl
