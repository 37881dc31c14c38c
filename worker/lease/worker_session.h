#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/lease/backoff.h"
#include "worker/lease/held_trial.h"
#include "worker/lease/worker_client.h"
#include "worker/trial/trial_device.h"

namespace pawl {

struct SessionOptions {
  std::string name;      // workers/h200-0
  std::string instance;  // random, one a process
  std::string version;
  Backoff::Duration shortest_backoff{0.1};
  Backoff::Duration longest_backoff{5};
  Backoff::Duration patience{30};  // with a name that is taken; longer than a lease
};

// A registered worker as its orchestrator knows it: every call signed with name and instance, tried again until it is
// answered, and registered anew where the orchestrator has forgotten the worker. Thread-safe.
class WorkerSession {
 public:
  // Whether to stop trying. Asked between tries.
  using GiveUp = std::function<bool()>;

  WorkerSession(WorkerClient& client, const v1::Device& device, SessionOptions options);

  // ALREADY_EXISTS: the name stays taken. Other errors but CANCELLED: the orchestrator does not want this worker.
  absl::Status Register(const GiveUp& give_up);
  double renew_seconds() const { return renew_seconds_; }

  // One try each. UNAVAILABLE: try again later; NOT_FOUND was dealt with.
  absl::StatusOr<v1::LeaseTrialResponse> Lease(double wait_seconds);
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const HeldTrial& held);

  absl::StatusOr<std::shared_ptr<const v1::Bundle>> GetBundle(const std::string& hash, const GiveUp& give_up);
  // Stores what belongs to a result and names it there; what can't be stored is left out, and the result says so.
  void PutArtifacts(std::vector<Artifact> artifacts, v1::TrialResult* result, const GiveUp& give_up);
  // Delivers the request's outcome. An error: nobody wants it, or it was given up.
  absl::StatusOr<v1::CompleteTrialResponse> Complete(const HeldTrial& held, v1::CompleteTrialRequest request,
                                                     const GiveUp& give_up);
  // Nothing where it never came, or has gone before. Who has gone does not come back.
  absl::Status Leave(bool gone);

  void StopLeasing() { client_.StopLeasing(); }
  // Waits, or until `give_up` holds; whoever makes it hold calls Wake.
  void Wait(Backoff::Duration duration, const GiveUp& give_up);
  void Wake();

 private:
  template <typename Request>
  Request Signed() const;
  template <typename Call>
  auto TryUntilAnswered(const char* what, const GiveUp& give_up, const Call& call) -> decltype(call());
  absl::Status RegisterAnew();
  absl::Status RegisterOnce();
  absl::Status Retried(absl::Status status);

  WorkerClient& client_;
  const v1::Device& device_;
  const SessionOptions options_;
  std::atomic<double> renew_seconds_ = 5;
  std::atomic<bool> registered_ = false;
  std::atomic<bool> left_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::map<std::string, std::shared_ptr<const v1::Bundle>> bundles_;
};

}  // namespace pawl
