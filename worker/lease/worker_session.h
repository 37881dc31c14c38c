#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"
#include "worker/lease/held_trial.h"
#include "worker/lease/worker_client.h"
#include "worker/trial/trial_device.h"

namespace pawl {

// Waits between tries: each twice as long as the last up to a limit, less up to a half at random, so that many workers
// do not come back in step.
class Backoff {
 public:
  using Duration = std::chrono::duration<double>;
  Backoff(Duration shortest, Duration longest) : shortest_(shortest), longest_(longest), next_(shortest) {}

  Duration Next() {
    const Duration wait = next_ * std::uniform_real_distribution<double>(0.5, 1)(random_);
    next_ = std::min(2 * next_, longest_);
    return wait;
  }
  void Reset() { next_ = shortest_; }

 private:
  const Duration shortest_, longest_;
  Duration next_;
  std::minstd_rand random_{std::random_device{}()};
};

struct SessionOptions {
  std::string orchestrator;  // its address, for log lines
  std::string name;          // workers/h200-0
  std::string instance;      // random, one a process
  std::string version;
  Backoff::Duration shortest_backoff{0.1};
  Backoff::Duration longest_backoff{5};
  Backoff::Duration patience{30};  // with a name that is taken; longer than a lease
};

// A registered worker as its orchestrator knows it. Every call carries name and instance and is retried until it is
// answered; where the orchestrator has forgotten the worker, it registers again. Thread-safe.
class WorkerSession {
 public:
  // Whether to stop trying. Asked between tries.
  using GiveUp = std::function<bool()>;

  WorkerSession(WorkerClient& client, const v1::Device& device, SessionOptions options);

  // ALREADY_EXISTS: another process keeps the name. CANCELLED: given up. Other errors: the orchestrator rejects this
  // worker. The message is one line that says whom it tried and what to do.
  absl::Status Register(const GiveUp& give_up);
  double renew_seconds() const { return renew_seconds_; }

  // One try each. UNAVAILABLE: try again later; NOT_FOUND was dealt with.
  absl::StatusOr<v1::LeaseTrialResponse> Lease(double wait_seconds);
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const HeldTrial& held);

  absl::StatusOr<std::shared_ptr<const v1::Bundle>> GetBundle(const std::string& hash, const GiveUp& give_up);
  // Stores what belongs to a result and names it there; what can't be stored is left out, and the result says so.
  void PutArtifacts(std::vector<Artifact> artifacts, v1::TrialResult* result, const GiveUp& give_up);
  // Delivers the request's outcome. An error: the orchestrator does not take it, or the call was given up.
  absl::StatusOr<v1::CompleteTrialResponse> Complete(const HeldTrial& held, v1::CompleteTrialRequest request,
                                                     const GiveUp& give_up);
  // Does nothing where the worker never registered, or has left. A worker that has left does not come back.
  absl::Status Leave(bool gone);

  void StopLeasing() { client_.StopLeasing(); }
  // Waits, at most until `give_up` holds; the thread that makes it hold calls Wake.
  void Wait(Backoff::Duration duration, const GiveUp& give_up);
  void Wake();

 private:
  template <typename Request>
  Request Signed() const;
  template <typename Call>
  auto TryUntilAnswered(const char* what, const GiveUp& give_up, const Call& call) -> decltype(call());
  absl::Status RegisterAgain();
  absl::Status RegisterOnce();
  absl::Status Retried(absl::Status status);
  // For log lines: "the orchestrator at 127.0.0.1:4317".
  std::string Orchestrator() const;

  WorkerClient& client_;
  const v1::Device& device_;
  const SessionOptions options_;
  std::atomic<double> renew_seconds_ = 5;
  std::atomic<bool> registered_ = false;
  std::atomic<bool> left_ = false;

  absl::Mutex mutex_;
  SteadyCondition wake_;
  std::map<std::string, std::shared_ptr<const v1::Bundle>> bundles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
