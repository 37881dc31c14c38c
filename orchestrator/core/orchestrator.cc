#include "orchestrator/core/orchestrator.h"

#include <utility>

#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/recovery.h"

namespace pawl {

Orchestrator::Orchestrator(Store& store, const Chooser& chooser, WatchHub& hub, Clock clock,
                           OrchestratorOptions options)
    : store_(store),
      chooser_(chooser),
      hub_(hub),
      clock_(std::move(clock)),
      options_(std::move(options)),
      state_(options_.lease),
      committer_(store, hub, state_, options_),
      leases_(state_, committer_, options_),
      scheduler_(state_, committer_, leases_, chooser, store.secret(), options_),
      completions_([this](const std::vector<Completion>& together) { CompleteTogether(together); }) {}

absl::Status Orchestrator::Load() {
  absl::MutexLock lock(&mutex_);
  return Restart(store_, bundles_, options_, clock_(), &state_);
}

absl::Status Orchestrator::Commit(Step* step, Deferred* deferred) {
  scheduler_.Plan(step);
  scheduler_.OfferTrials(step);
  return committer_.Commit(step, deferred);
}

void Orchestrator::Tick() {
  Turn turn(&mutex_);
  if (!state_.broken.ok()) {
    if (!RecoverFromFailedCommit(store_, bundles_, options_, clock_(), &state_).ok()) return;
  }
  Step step = Begin();
  leases_.Expire(&step);
  GiveUpVerifications(&step);
  scheduler_.EndWaitsForProposals(&step);
  scheduler_.EndWaits(step.now, turn.deferred());
  (void)Commit(&step, turn.deferred());  // a failure is kept in state_.broken
}

void Orchestrator::StopLeasing() {
  Turn turn(&mutex_);
  state_.leasing = false;
  state_.SendAway(TryLater("the orchestrator shuts down", 1), turn.deferred());
}

int Orchestrator::leases_out() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(state_.deadlines.size());
}

bool Orchestrator::serving() const {
  absl::MutexLock lock(&mutex_);
  return state_.broken.ok();
}

absl::StatusOr<v1::Campaign> Orchestrator::Stored(int64_t number) {
  absl::StatusOr<std::optional<v1::Campaign>> campaign = store_.GetCampaign(number);
  if (!campaign.ok()) return campaign.status();
  if (!*campaign) return NoSuch(CampaignName(number), "pawl campaigns lists those there are");
  return **std::move(campaign);
}

}  // namespace pawl
