#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

using CompleteAnswer = std::function<void(absl::StatusOr<v1::CompleteTrialResponse>)>;

// A result that a worker delivered.
struct Completion {
  const v1::CompleteTrialRequest* request;  // lives until it is answered
  CompleteAnswer answer;
};

// Results that wait to be committed. A thread of its own takes all that are there, up to a limit, and hands them on
// together. Thread-safe. Everybody is answered before the destructor returns.
class CompletionQueue {
 public:
  using Handler = std::function<void(const std::vector<Completion>& together)>;  // answers each
  explicit CompletionQueue(Handler handler);
  ~CompletionQueue();

  void Add(Completion completion);

 private:
  void Work();

  const Handler handler_;
  absl::Mutex mutex_;
  absl::CondVar arrived_;
  std::deque<Completion> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: everything is there when it starts
};

}  // namespace pawl
