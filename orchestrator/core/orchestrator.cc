#include "orchestrator/core/orchestrator.h"

#include <utility>

#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/recovery.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr absl::Duration kNoteEvery = absl::Seconds(1);

}  // namespace

Orchestrator::Orchestrator(Store& store, const Chooser& chooser, WatchHub& hub, Clock clock,
                           OrchestratorOptions options)
    : store_(store),
      chooser_(chooser),
      hub_(hub),
      clock_(std::move(clock)),
      options_(std::move(options)),
      state_(options_),
      committer_(store, hub, state_, meters_, options_),
      leases_(state_, committer_, options_),
      scheduler_(state_, committer_, leases_, store.secret(), options_),
      completions_([this](const std::vector<Completion>& together) { CompleteTogether(together); },
                   options_.result_threads) {}

absl::Status Orchestrator::Load() {
  {
    Turn turn(&mutex_);
    if (absl::Status status = Restart(store_, bundles_, options_, clock_(), &state_); !status.ok()) return status;
    (void)EndLeasesOfOriginal(turn.deferred());  // a failure is kept in state_.broken
    NoteLeases(turn.deferred());
  }
  DecideAfterLoad();
  return absl::OkStatus();
}

// Workers hold leases that the original of this database gave, and may have delivered to it.
absl::Status Orchestrator::EndLeasesOfOriginal(Deferred* deferred) {
  if (!store_.Copied()) return absl::OkStatus();
  if (!state_.leases.empty()) {
    spdlog::warn("the database is not the file that was last served here: {} leases end", state_.leases.size());
  }
  Step step = Begin();
  std::vector<TrialKey> out;
  for (const auto& [key, lease] : state_.leases) out.push_back(key);
  for (const TrialKey& key : out) {
    leases_.Lose(&step, key, v1::LeaseLost::RESTORED, "the database was restored from a copy");
  }
  step.writes.leases_ended = true;
  return Commit(&step, deferred);
}

void Orchestrator::NoteLeases(Deferred* deferred) {
  if (state_.campaigns.empty() || !state_.broken.ok()) return;
  noted_ = state_.served.Now();
  const absl::Status status = store_.WriteNotes(leases_.Notes());
  if (status.ok() || !store_.uncertain()) return;  // what was noted last holds: the next start grants some more time
  state_.broken = TryLater(std::string(status.message()), 1);
  state_.SendAway(state_.broken, deferred);
}

absl::Status Orchestrator::Commit(Step* step, Deferred* deferred) {
  const std::set<int64_t> touched = step->touched;  // for those of which trials are only offered it was decided before
  scheduler_.OfferTrials(step);
  if (absl::Status status = committer_.Commit(step, deferred); !status.ok()) return status;
  std::vector<OpenDecision> open = Open(touched);
  if (!open.empty()) deferred->push_back([this, open = std::move(open)]() mutable { Decide(std::move(open)); });
  return absl::OkStatus();
}

void Orchestrator::Tick() {
  if (Recover()) DecideAfterLoad();
  Turn turn(&mutex_);
  if (!state_.broken.ok()) return;
  if (!WriteResults(turn.deferred()).ok()) return;  // a decision may take long
  Step step = Begin();
  scheduler_.EndWaits(step.now, turn.deferred());  // first: who waits is there
  leases_.Expire(&step);
  GiveUpVerifications(&step);
  scheduler_.EndWaitsForProposals(&step);
  (void)Commit(&step, turn.deferred());  // a failure is kept in state_.broken
  const absl::Duration unnoted = state_.served.Now() - noted_;
  if (unnoted >= kNoteEvery || unnoted < absl::ZeroDuration()) NoteLeases(turn.deferred());
}

bool Orchestrator::Recover() {
  Turn turn(&mutex_);
  if (state_.broken.ok()) return false;
  (void)WriteResults(turn.deferred());  // which says that they are lost: they are not in what is read now
  return RecoverFromFailedCommit(store_, bundles_, options_, clock_(), &state_).ok() &&
         EndLeasesOfOriginal(turn.deferred()).ok();
}

void Orchestrator::StopLeasing() {
  Turn turn(&mutex_);
  state_.leasing = false;
  state_.SendAway(TryLater("the orchestrator shuts down", 1), turn.deferred());
}

int Orchestrator::leases_out() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(state_.leases.size());
}

bool Orchestrator::serving() const {
  absl::MutexLock lock(&mutex_);
  return state_.broken.ok();
}

absl::StatusOr<v1::Campaign> Orchestrator::Stored(int64_t number) {
  absl::StatusOr<std::optional<v1::Campaign>> campaign = store_.GetCampaign(number);
  if (!campaign.ok()) return campaign.status();
  if (!*campaign) return NoSuchCampaign(store_, number);
  return **std::move(campaign);
}

}  // namespace pawl
