#include "orchestrator/core/recovery.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
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

absl::Status LoadUnfinished(Store& store, BundlePool& bundles, absl::Time deadline, LiveState* state) {
  absl::StatusOr<std::vector<int64_t>> unfinished = store.UnfinishedCampaigns();
  if (!unfinished.ok()) return unfinished.status();
  for (int64_t number : *unfinished) {
    absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store, number, &bundles);
    if (!campaign.ok()) return campaign.status();
    for (const auto& [trial, open] : campaign->state->open_trials()) {
      if (open.worker.empty()) continue;
      state->deadlines[{number, trial}] = deadline;
      if (v1::Worker* worker = state->workers.Mutable(open.worker)) worker->add_trials(TrialName(number, trial));
    }
    state->queue.Update(number, *campaign->state);
    state->campaigns[number] = std::move(campaign->state);
  }
  return absl::OkStatus();
}

absl::Status LoadAll(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state) {
  state->campaigns.clear();
  state->deadlines.clear();
  state->queue.Clear();
  state->baselines.Clear();
  state->loaded_at = now;
  absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  state->workers.Load(*workers, now);
  if (absl::Status status = state->patterns.Load(store); !status.ok()) return status;
  if (absl::Status status = LoadBaselines(store, state); !status.ok()) return status;
  absl::StatusOr<int64_t> last = store.LastCampaign();
  if (!last.ok()) return last.status();
  state->next_campaign = *last + 1;
  if (absl::Status status = LoadUnfinished(store, bundles, now + options.lease, state); !status.ok()) return status;
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
    spdlog::warn("{} workers of long ago stay in the database: {}", old.size(), std::string(status.message()));
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
