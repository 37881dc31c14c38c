#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "orchestrator/security/tokens.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

using CompleteAnswer = std::function<void(absl::StatusOr<v1::CompleteTrialResponse>)>;

// A result that a worker delivered.
struct Completion {
  const v1::CompleteTrialRequest* request;  // lives until it is answered
  CompleteAnswer answer;
};

// What is known of a result before it is taken in, and what became of it.
struct CheckedCompletion {
  const Completion* completion;
  std::optional<LeaseName> lease;                         // nothing: it is not this worker's
  absl::StatusOr<std::string> missing_blob;               // its hash; empty: all are there
  absl::StatusOr<std::optional<v1::Iteration>> recorded;  // of a verification: what is measured again
  bool closed = false;                                    // its trial is not open any more
  bool held = false;                                      // until it is decided what its campaign does next
  absl::StatusOr<v1::CompleteTrialResponse> answer = v1::CompleteTrialResponse();
};

// A worker that delivered a result and asks for its next trial.
struct NextLease {
  std::string worker;
  v1::CompleteTrialResponse* response;
};

// Results that wait to be committed. Threads of its own take all that are there, up to a limit, and hand them on
// together. Thread-safe. Everybody is answered before the destructor returns.
class CompletionQueue {
 public:
  using Handler = std::function<void(const std::vector<Completion>& together)>;  // answers each, or adds it again
  CompletionQueue(Handler handler, int threads);
  ~CompletionQueue();

  void Add(Completion completion);

 private:
  void Work();

  const Handler handler_;
  absl::Mutex mutex_;
  absl::CondVar arrived_;
  std::deque<Completion> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: everything is there when they start
};

}  // namespace pawl
