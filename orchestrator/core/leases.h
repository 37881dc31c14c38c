#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "orchestrator/core/committer.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// The leases that are out: who holds which trial until when, and what becomes of a trial whose lease is lost. Not
// thread-safe: the orchestrator's lock guards it.
class Leases {
 public:
  Leases(LiveState& state, Committer& committer, const OrchestratorOptions& options)
      : state_(state), committer_(committer), options_(options) {}

  void Grant(TrialKey key, v1::Worker* worker, absl::Time now);
  void Renew(TrialKey key, absl::Time now) { state_.deadlines[key] = now + options_.lease; }
  // Nobody waits for the trial any more: it has its result, or its campaign was cancelled.
  void Release(TrialKey key, const std::string& worker);

  // The worker won't deliver. The trial goes back into the queue; after too many lost workers it is put aside, after
  // too many host faults its campaign is paused.
  void Lose(Step* step, TrialKey key, v1::LeaseLost::Reason reason, const std::string& message);
  void LoseAllOf(Step* step, const v1::Worker& worker, v1::LeaseLost::Reason reason, const std::string& message);

  // Loses every lease whose deadline has passed. Once a tick.
  void Expire(Step* step);

 private:
  void ForgiveStall();

  LiveState& state_;
  Committer& committer_;
  const OrchestratorOptions& options_;
  std::optional<std::chrono::steady_clock::time_point> last_tick_;
};

// An error for a worker that shows a lease which does not hold.
absl::Status LeaseError(absl::StatusCode code, const std::string& message, const std::string& trial);

}  // namespace pawl
