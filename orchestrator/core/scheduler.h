#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "orchestrator/core/committer.h"
#include "orchestrator/core/leases.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

// Whether the device can take one of the campaign's trials that wait for a worker; where none waits, any of it.
absl::Status CanTakeSome(const v1::Device& device, const CampaignState& campaign);

// Which trials there are, and which worker gets which. Not thread-safe: the orchestrator's lock guards it.
class Scheduler {
 public:
  // `secret`: of the lease tokens.
  Scheduler(LiveState& state, Committer& committer, Leases& leases, const std::string& secret,
            const OrchestratorOptions& options)
      : state_(state), committer_(committer), leases_(leases), secret_(secret), options_(options) {}

  static constexpr int kMaxSlots = 16;  // a round that is larger chooses blindly
  // How many of its trials could run at once: its author's share of the workers of its device, divided among those of
  // the author's campaigns there that have its priority. Where one of a higher priority has trials for such workers,
  // this one takes what those leave.
  int SlotsOf(const CampaignState& campaign, absl::Time now) const;
  // Touches campaigns whose wait for a proposal is over.
  void EndWaitsForProposals(Step* step);

  // Notes which authors have reached a limit, and since when. Before TakeTrial; OfferTrials does so by itself.
  void NoteLimits(Step* step);
  // Of the time since a trial of the campaign ran last: how long none could be leased because of a limit.
  absl::Duration HeldBack(const CampaignState& campaign, absl::Duration now) const;

  // Leases a trial that the worker can run, of a campaign that is not in use: of the author who holds the fewest leases
  // for their share, the oldest of the highest priority. False: there is none.
  bool TakeTrial(Step* step, const std::string& worker, v1::LeaseTrialResponse* response);
  // The same for those who wait, who are answered after the commit. A worker that never renewed its last lease may
  // have stopped: it gets what nobody else wants.
  void OfferTrials(Step* step);
  // Tells workers that hold a trial of the campaign what may follow it, where they wait for another: something was
  // proposed since they leased it. They are answered after the commit, without a trial.
  void Foretell(Step* step, const CampaignState& campaign);
  // Sends away those who waited long enough, and those whose worker is not known.
  void EndWaits(absl::Time now, Deferred* deferred);
  // The same for one worker, at once.
  void EndWaitsOf(const std::string& worker, Deferred* deferred);

  // Sets waiting_for and message: why no trial of the campaign runs; unspecified and empty where there is a worker for
  // it.
  void SayWhatItWaitsFor(const CampaignState& campaign, absl::Time now, v1::Campaign* said) const;
  // The same, where that is maintenance or a limit; false: it is neither.
  bool SayWhatHoldsIt(const CampaignState& campaign, absl::Time now, v1::Campaign* said) const;

 private:
  void OfferTrials(Step* step, bool unconfirmed, std::set<std::string>* hopeless);
  double WeightOf(const std::string& author) const;
  // The trial to lease next to such a worker; absent: none.
  std::optional<TrialQueue::Key> NextFor(const v1::Worker& worker, absl::Time now) const;
  // The worker's machine could not run the trial, and another that is there may.
  bool LeavesToOthers(const v1::Worker& worker, const TrialQueue::Key& key, absl::Time now) const;

  LiveState& state_;
  Committer& committer_;
  Leases& leases_;
  const std::string& secret_;
  const OrchestratorOptions& options_;
};

}  // namespace pawl
