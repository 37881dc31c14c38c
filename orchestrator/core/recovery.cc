#include "orchestrator/core/recovery.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/engine/search/next_event.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kBaselineCampaigns = 1000;  // the newest, from which it is known what a baseline takes

absl::Status LoadBaselines(Store& store, LiveState* state) {
  absl::StatusOr<std::vector<v1::Campaign>> newest =
      store.ListCampaigns(std::numeric_limits<int64_t>::max(), kBaselineCampaigns);
  if (!newest.ok()) return newest.status();
  for (auto campaign = newest->rbegin(); campaign != newest->rend(); ++campaign) state->baselines.Note(*campaign);
  return absl::OkStatus();
}

// A lease that was out goes on where it was. Its worker could not be heard of meanwhile and has a whole lease for that,
// but only once until it renews: a service that is started again and again must not keep what a dead worker held.
HeldLease Adopted(const OpenTrial& open, const v1::ServiceNotes::Lease* noted, absl::Duration lease,
                  absl::Duration served) {
  HeldLease held;
  held.deadline = open.leased_at ? *open.leased_at + lease : served + lease;
  if (noted != nullptr && noted->attempt() == open.attempt) {
    held.deadline = absl::Microseconds(noted->deadline_us());
    held.renewed = noted->renewed();
    held.adopted = noted->adopted();
  }
  if (!held.adopted) held.deadline = std::max(held.deadline, served + lease);
  held.adopted = true;
  return held;
}

absl::Status LoadLeases(Store& store, absl::Duration lease, LiveState* state) {
  const absl::StatusOr<v1::ServiceNotes> notes = store.Notes();
  if (!notes.ok()) return notes.status();
  std::map<TrialKey, const v1::ServiceNotes::Lease*> noted;
  for (const v1::ServiceNotes::Lease& each : notes->leases()) noted[{each.campaign(), each.trial()}] = &each;
  absl::Duration served = absl::Microseconds(notes->served_us());
  for (const auto& [number, campaign] : state->campaigns) {
    served = std::max(served, campaign->served().value_or(served));
  }
  state->served.Start(served);
  for (const auto& [number, campaign] : state->campaigns) {
    for (const auto& [trial, open] : campaign->open_trials()) {
      if (open.worker.empty()) continue;
      const auto found = noted.find({number, trial});
      state->leases[{number, trial}] = Adopted(open, found == noted.end() ? nullptr : found->second, lease, served);
      if (v1::Worker* worker = state->workers.Mutable(open.worker)) worker->add_trials(TrialName(number, trial));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadUnfinished(Store& store, BundlePool& bundles, LiveState* state) {
  absl::StatusOr<std::vector<int64_t>> unfinished = store.UnfinishedCampaigns();
  if (!unfinished.ok()) return unfinished.status();
  for (int64_t number : *unfinished) {
    absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store, number, &bundles);
    if (!campaign.ok()) return campaign.status();
    state->queue.Update(number, *campaign->state);
    if (UnappliedEdit(*campaign->state) != nullptr) state->unapplied.insert(number);
    state->campaigns[number] = std::move(campaign->state);
  }
  return absl::OkStatus();
}

absl::Status LoadAll(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state) {
  state->campaigns.clear();
  state->leases.clear();
  state->unconfirmed.clear();
  state->unapplied.clear();
  state->queue.Clear();
  state->baselines.Clear();
  absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  state->workers.Load(*workers, now);
  if (absl::Status status = state->patterns.Load(store); !status.ok()) return status;
  if (absl::Status status = LoadBaselines(store, state); !status.ok()) return status;
  absl::StatusOr<int64_t> last = store.LastCampaign();
  if (!last.ok()) return last.status();
  state->next_campaign = *last + 1;
  if (absl::Status status = LoadUnfinished(store, bundles, state); !status.ok()) return status;
  if (absl::Status status = LoadLeases(store, options.lease, state); !status.ok()) return status;
  state->loaded_at = {now, state->served.Now()};
  state->broken = absl::OkStatus();
  return absl::OkStatus();
}

}  // namespace

absl::Status Restart(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state) {
  if (absl::Status status = BringRowsUpToDate(store); !status.ok()) return status;
  if (absl::Status status = LoadAll(store, bundles, options, now, state); !status.ok()) return status;
  const std::vector<std::string> old = state->workers.RemoveOld(now - options.forget_workers);
  if (absl::Status status = store.RemoveWorkers(old); !status.ok()) {
    spdlog::warn("{} old workers could not be removed from the database: {}", old.size(),
                 std::string(status.message()));
  }
  return absl::OkStatus();
}

absl::Status RecoverFromFailedCommit(Store& store, BundlePool& bundles, const OrchestratorOptions& options,
                                     absl::Time now, LiveState* state) {
  if (absl::Status status = store.Probe(); !status.ok()) return status;
  if (absl::Status status = LoadAll(store, bundles, options, now, state); !status.ok()) {
    state->broken = TryLater(std::string(status.message()), 1);
    return status;
  }
  store.ClearUncertain();
  spdlog::info("the database can be written again: serving");
  return absl::OkStatus();
}

}  // namespace pawl
