#include "orchestrator/core/recovery.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/names/resource_name.h"
#include "kernels/bundle_message.h"
#include "orchestrator/core/errors.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kBaselineCampaigns = 1000;  // the newest, from which it is known what a baseline takes
constexpr size_t kBaselineBundles = 100;  // their newest bundles, whose contracts are read: one may have many megabytes

absl::Status LoadBaselines(Store& store, LiveState* state) {
  absl::StatusOr<std::vector<v1::Campaign>> newest =
      store.ListCampaigns(std::numeric_limits<int64_t>::max(), kBaselineCampaigns);
  if (!newest.ok()) return newest.status();
  absl::StatusOr<std::vector<v1::Campaign>> archived = store.ListArchived(kBaselineCampaigns);
  if (!archived.ok()) return archived.status();
  std::map<int64_t, const v1::Campaign*> by_number;
  for (const std::vector<v1::Campaign>* list : {&*newest, &*archived}) {
    for (const v1::Campaign& campaign : *list) by_number[ParseCampaignName(campaign.name()).value_or(0)] = &campaign;
  }
  std::map<std::string, std::string> contracts;  // by the hashes of their bundles
  for (auto it = by_number.rbegin(); it != by_number.rend() && contracts.size() < kBaselineBundles; ++it) {
    const std::string& hash = it->second->bundle_hash();
    if (!KnownBaselines::Counts(*it->second) || contracts.contains(hash)) continue;
    const absl::StatusOr<std::optional<StoredBlob>> blob = store.GetBlob(hash);
    if (!blob.ok()) return blob.status();
    v1::Bundle bundle;  // of an archived campaign it is not here
    contracts[hash] = *blob && bundle.ParseFromString((*blob)->content) ? ContractHash(bundle) : "";
  }
  for (const auto& [number, campaign] : by_number) {
    const auto contract = contracts.find(campaign->bundle_hash());
    state->baselines.Note(*campaign, contract == contracts.end() ? "" : contract->second);
  }
  return absl::OkStatus();
}

// Of campaigns that an older Pawl ran: each as a whole, when it ended.
absl::Status CountEarlierSpending(Store& store) {
  const absl::StatusOr<bool> uncounted = store.SpendingUncounted();
  if (!uncounted.ok() || !*uncounted) return uncounted.status();
  std::vector<SpentHour> hours;
  int64_t before = std::numeric_limits<int64_t>::max();
  while (true) {
    const absl::StatusOr<std::vector<v1::Campaign>> page = store.ListCampaigns(before, kBaselineCampaigns);
    if (!page.ok()) return page.status();
    if (page->empty()) break;
    for (const v1::Campaign& campaign : *page) {
      before = ParseCampaignName(campaign.name()).value_or(1);
      if (campaign.replay() || !(campaign.gpu_seconds() > 0)) continue;
      const absl::StatusOr<std::vector<v1::Event>> first = store.Events(before, 0, 1);
      if (!first.ok()) return first.status();
      if (first->empty()) continue;
      const absl::Time at = TimeOf(campaign.has_end_time() ? campaign.end_time() : campaign.create_time());
      hours.push_back({first->front().submitted().author(), HourOf(at), campaign.gpu_seconds(), campaign.dollars()});
    }
  }
  return store.SetSpending(hours);
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
  absl::StatusOr<v1::MaintenanceNote> maintenance = store.Maintenance();
  if (!maintenance.ok()) return maintenance.status();
  state->maintenance = *std::move(maintenance);
  const absl::Duration maintained = absl::Microseconds(state->maintenance.earlier_us());
  absl::Duration served =
      std::max(absl::Microseconds(notes->served_us()), absl::Microseconds(state->maintenance.since_us()));
  for (const auto& [number, campaign] : state->campaigns) {
    if (campaign->served()) served = std::max(served, *campaign->served() + maintained);
  }
  state->served.Start(served);
  for (const auto& [author, since] : notes->limited_since_us()) {
    state->limited[author] = {.since = absl::Microseconds(since), .until = {}};
  }
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
    state->campaigns[number] = std::move(campaign->state);
  }
  return absl::OkStatus();
}

// The stored workers registered with an orchestrator of another protocol. One that is still there has to register with
// this one, which says so if they do not work together.
absl::StatusOr<bool> WorkersOutdated(Store& store) {
  const absl::StatusOr<int64_t> protocol = store.WorkerProtocol();
  if (!protocol.ok()) return protocol.status();
  return *protocol != v1::WorkerProtocol_MAX;
}

absl::Status RemoveOutdatedWorkers(Store& store) {
  const absl::StatusOr<bool> outdated = WorkersOutdated(store);
  if (!outdated.ok() || !*outdated) return outdated.status();
  const absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  std::vector<std::string> names;
  for (const StoredWorker& worker : *workers) names.push_back(worker.worker.name());
  if (absl::Status status = store.RemoveWorkers(names); !status.ok()) return status;
  return store.NoteWorkerProtocol(v1::WorkerProtocol_MAX);
}

absl::Status LoadAll(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state) {
  state->campaigns.clear();
  state->leases.clear();
  state->unconfirmed.clear();
  state->failed_by.clear();
  state->queue.Clear();
  state->baselines.Clear();
  state->limited.clear();
  absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  const absl::StatusOr<bool> outdated = WorkersOutdated(store);
  if (!outdated.ok()) return outdated.status();
  if (*outdated) workers->clear();
  state->workers.Load(*workers, now);
  if (absl::Status status = state->patterns.Load(store); !status.ok()) return status;
  if (absl::Status status = LoadBaselines(store, state); !status.ok()) return status;
  absl::StatusOr<std::vector<SpentHour>> spending = store.Spending(state->limits.FirstHour(now));
  if (!spending.ok()) return spending.status();
  state->limits.Load(*spending);
  absl::StatusOr<int64_t> last = store.LastCampaign();
  if (!last.ok()) return last.status();
  state->next_campaign = *last + 1;
  if (absl::Status status = LoadUnfinished(store, bundles, state); !status.ok()) return status;
  if (absl::Status status = LoadLeases(store, options.lease, state); !status.ok()) return status;
  state->loaded_at = {now, state->CampaignTime()};
  state->broken = absl::OkStatus();
  return absl::OkStatus();
}

}  // namespace

absl::Status Restart(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state) {
  if (absl::Status status = BringRowsUpToDate(store); !status.ok()) return status;
  if (absl::Status status = CountEarlierSpending(store); !status.ok()) return status;
  if (absl::Status status = LoadAll(store, bundles, options, now, state); !status.ok()) return status;
  const std::vector<std::string> old = state->workers.RemoveOld(now - options.forget_workers);
  if (absl::Status status = store.RemoveWorkers(old); !status.ok()) {
    spdlog::warn("{} old workers could not be removed from the database: {}", old.size(),
                 std::string(status.message()));
  }
  if (absl::Status status = RemoveOutdatedWorkers(store); !status.ok()) {
    spdlog::warn("workers of another protocol could not be removed from the database: {}",
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
