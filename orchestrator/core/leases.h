#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "orchestrator/core/committer.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// The leases that are out: who holds which trial until when, and what becomes of a trial whose lease is lost. Deadlines
// are in served time (ServedClock). Not thread-safe: the orchestrator's lock guards it.
class Leases {
 public:
  Leases(LiveState& state, Committer& committer, const OrchestratorOptions& options)
      : state_(state), committer_(committer), options_(options) {}

  void Grant(TrialKey key, v1::Worker* worker);
  void Renew(TrialKey key, const std::string& worker);
  // Nobody waits for the trial any more: it has its result, or its campaign ends without it.
  void Release(TrialKey key, const std::string& worker);
  // Of a campaign that ends, but for trials that verify. Workers are told at their next renewals.
  void ReleaseAllOf(int64_t number, const CampaignState& campaign);

  // The worker won't deliver. The trial goes back into the queue. After too many workers that were lost to it, each
  // after it had renewed, the trial is put aside; its campaign is paused where it is the start, and after too many host
  // faults.
  void Lose(Step* step, TrialKey key, v1::LeaseLost::Reason reason, const std::string& message);
  void LoseAllOf(Step* step, const v1::Worker& worker, v1::LeaseLost::Reason reason, const std::string& message);

  // Loses every lease whose deadline has passed. Once a tick.
  void Expire(Step* step);

  // What the next start must know of them.
  v1::ServiceNotes Notes() const;

 private:
  LiveState& state_;
  Committer& committer_;
  const OrchestratorOptions& options_;
};

// An error for a worker whose lease another copy of the database gave.
absl::Status OtherCopy(const std::string& trial);
// An error for a worker that shows a lease which does not hold.
absl::Status LeaseError(absl::StatusCode code, const std::string& message, const std::string& trial);

}  // namespace pawl
