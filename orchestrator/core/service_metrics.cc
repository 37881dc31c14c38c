#include "orchestrator/core/service_metrics.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/meters/exposition.h"

namespace pawl {
namespace {

std::string GpuAskedFor(const v1::Campaign& campaign) {
  if (!campaign.device().empty()) return campaign.device();
  return campaign.spec().gpu().empty() ? "any" : campaign.spec().gpu();
}

void WriteFigures(const ServiceFigures& figures, Exposition* text) {
  using Trials = ServiceFigures::Trials;
  const auto trials = [&](const char* name, const char* help, const auto& value) {
    text->Family(name, "gauge", help);
    for (const auto& [gpu, of] : figures.trials) text->Sample({{"gpu", gpu}}, value(of));
  };
  text->Family("pawl_serving", "gauge", "1 while requests are served, 0 while the database can't be written.");
  text->Sample({}, figures.serving);
  text->Family("pawl_maintenance", "gauge", "1 while no trial is leased because of maintenance.");
  text->Sample({}, figures.maintenance);
  trials("pawl_trials_queued", "Trials that wait for a worker, by the GPU that is asked for; any: no model is named.",
         [](const Trials& of) { return of.queued; });
  trials("pawl_trials_held",
         "Trials that are not leased because of maintenance, or of a limit of their author; not among the queued ones.",
         [](const Trials& of) { return of.held; });
  trials("pawl_trials_unserved", "Queued trials that no connected worker can run.",
         [](const Trials& of) { return of.unserved; });
  trials("pawl_trials_leased", "Trials that a worker holds.", [](const Trials& of) { return of.leased; });
  trials("pawl_trials_oldest_queued_seconds", "Time since the oldest queued trial was planned.",
         [](const Trials& of) { return absl::ToDoubleSeconds(of.oldest_queued); });
  trials("pawl_trials_oldest_leased_seconds", "Time since the oldest leased trial was planned.",
         [](const Trials& of) { return absl::ToDoubleSeconds(of.oldest_leased); });
  text->Family("pawl_workers", "gauge", "Workers by GPU and state.");
  for (const auto& [key, count] : figures.workers) {
    text->Sample({{"gpu", key.first}, {"state", key.second}}, count);
  }
  text->Family("pawl_campaigns", "gauge", "Unfinished campaigns by state.");
  for (const auto& [state, count] : figures.campaigns) text->Sample({{"state", state}}, count);
  text->Family("pawl_campaigns_waiting", "gauge", "Unfinished campaigns that wait, by what they wait for.");
  for (const auto& [what, count] : figures.waiting_for) text->Sample({{"for", what}}, count);
  text->Family("pawl_lease_calls_waiting", "gauge", "LeaseTrial calls that wait for a trial.");
  text->Sample({}, figures.waiting_leases);
}

void WriteSizes(const StoreSizes& sizes, Exposition* text) {
  const auto gauge = [&](const char* name, const char* help, int64_t value) {
    text->Family(name, "gauge", help);
    text->Sample({}, static_cast<double>(value));
  };
  gauge("pawl_database_bytes", "Size of the database file.", sizes.database);
  gauge("pawl_wal_bytes", "Size of its write-ahead log.", sizes.wal);
  gauge("pawl_blob_bytes", "Content of the blobs in the database.", sizes.blobs);
  gauge("pawl_blobs", "Number of blobs in the database.", sizes.blob_count);
  gauge("pawl_disk_free_bytes", "Space that is left on the database's file system.", sizes.free);
  gauge("pawl_disk_bytes", "Size of the database's file system.", sizes.disk);
}

}  // namespace

ServiceFigures Orchestrator::Figures() const {
  absl::MutexLock lock(&mutex_);
  ServiceFigures figures;
  const absl::Time now = clock_();
  figures.serving = state_.broken.ok();
  figures.maintenance = state_.maintenance.on();
  figures.waiting_leases = static_cast<int>(state_.waiting.size());

  // One of each kind is enough to tell whether a trial can be run.
  std::map<std::string, const v1::Device*> kinds;
  for (const v1::Worker* worker : state_.workers.Present(now)) {
    const v1::Device& device = worker->device();
    kinds.try_emplace(
        absl::StrCat(device.sanitizer(), device.label(), "\n", absl::StrJoin(device.bundle_hashes(), " ")), &device);
  }
  const auto runs_somewhere = [&](const CampaignState& campaign) {
    return std::any_of(kinds.begin(), kinds.end(),
                       [&](const auto& kind) { return CanTakeSome(*kind.second, campaign).ok(); });
  };
  for (const auto& [number, campaign] : state_.campaigns) {
    const v1::Campaign& summary = campaign->summary();
    if (!campaign->ended()) ++figures.campaigns[absl::AsciiStrToLower(v1::CampaignState_Name(summary.state()))];
    const bool queued = state_.queue.HasTrialOf(number);
    const bool served = !queued || runs_somewhere(*campaign);
    const bool limited = state_.limits.Find(campaign->author(), now).has_value();
    const bool held = queued && (figures.maintenance || limited);
    if (held) {
      ++figures.waiting_for[figures.maintenance ? "maintenance" : "limit"];
    } else if (queued && !served) {
      ++figures.waiting_for[kinds.empty() ? "worker" : "device"];
    }
    if (ProposalDeadline(*campaign)) ++figures.waiting_for["proposal"];
    ServiceFigures::Trials* trials = nullptr;
    for (const auto& [trial, open] : campaign->open_trials()) {
      if (open.worker.empty() && !campaign->leasable()) continue;  // paused
      if (trials == nullptr) trials = &NamedEntry(figures.trials, GpuAskedFor(summary));
      const absl::Duration age = now - open.planned_at;
      if (open.worker.empty() && held) {
        ++trials->held;
      } else if (open.worker.empty()) {
        ++trials->queued;
        trials->unserved += !served;
        trials->oldest_queued = std::max(trials->oldest_queued, age);
      } else {
        ++trials->leased;
        trials->oldest_leased = std::max(trials->oldest_leased, age);
      }
    }
  }
  std::map<std::string, bool> gpus;  // that have a label of their own
  for (const auto& [gpu, state] : state_.workers.LabelsAndStates(now)) {
    const std::string label = NameOrOther(gpus, gpu);
    gpus[label] = true;
    ++figures.workers[{label, absl::AsciiStrToLower(absl::StripPrefix(v1::WorkerState_Name(state), "WORKER_STATE_"))}];
  }
  return figures;
}

absl::StatusOr<std::string> ServiceMetrics(Orchestrator& orchestrator, Store& store) {
  Exposition text;
  text.Family("pawl_build_info", "gauge", "Always 1; the version of this orchestrator.");
  text.Sample({{"version", PAWL_VERSION}}, 1);
  WriteFigures(orchestrator.Figures(), &text);
  orchestrator.meters().Write(&text);
  // A database that can't be read must not hide the rest, of all times.
  if (const absl::StatusOr<StoreSizes> sizes = store.Sizes(); sizes.ok()) WriteSizes(*sizes, &text);
  return text.text();
}

}  // namespace pawl
