#include "fleet/decision.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

struct Count {
  int queued = 0, idle = 0;
  int pending = 0, running = 0, ending = 0, starting = 0;
  std::vector<int64_t> waiting;  // ids of pending jobs
};

}  // namespace

bool IsWorkerOfJob(const std::string& worker, int64_t job) {
  return absl::StartsWith(worker, absl::StrCat("slurm-", job, "-"));
}

int ClassFor(const std::vector<GpuClass>& classes, const std::string& gpu) {
  const std::string asked = absl::AsciiStrToLower(gpu);
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string own = absl::AsciiStrToLower(classes[i].gpu);
    if (asked == "any" || own.empty() || absl::StrContains(asked, own) || absl::StrContains(own, asked)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Decision Decide(const std::vector<GpuClass>& classes, const Demand& demand, const std::vector<FleetJob>& jobs,
                const FleetLimits& limits, const std::vector<int64_t>& stale) {
  std::vector<Count> counts(classes.size());
  Decision decision;
  for (const auto& [gpu, trials] : demand.queued) {
    if (const int of = ClassFor(classes, gpu); of >= 0) counts[of].queued += trials;
  }
  for (const auto& [gpu, idle] : demand.idle) {
    int workers = idle;
    if (demand.replays.contains(gpu)) {
      const auto own = demand.queued.find(gpu);
      workers = std::min(idle, own == demand.queued.end() ? 0 : own->second);
    }
    if (const int of = ClassFor(classes, gpu); of >= 0) counts[of].idle += workers;
  }
  int active = 0;
  for (const FleetJob& job : jobs) {
    const auto named =
        std::find_if(classes.begin(), classes.end(), [&](const GpuClass& c) { return c.gpu == job.gpu; });
    Count& count = counts[named == classes.end() ? 0 : named - classes.begin()];
    if (job.state == FleetJob::State::kPending) {
      ++count.pending;
      ++active;
      count.waiting.push_back(job.id);
    } else if (job.state == FleetJob::State::kRunning) {
      ++count.running;
      ++active;
      const bool registered = std::any_of(demand.workers.begin(), demand.workers.end(),
                                          [&](const std::string& worker) { return IsWorkerOfJob(worker, job.id); });
      decision.registered += registered;
      count.starting += !registered && std::find(stale.begin(), stale.end(), job.id) == stale.end();
    } else if (job.state == FleetJob::State::kEnding || job.state == FleetJob::State::kHeld) {
      ++active;
    }
  }
  int running = 0;
  for (const Count& count : counts) running += count.running + count.pending;
  for (size_t i = 0; i < classes.size(); ++i) {
    Count& count = counts[i];
    // The floor is the first class's.
    const int below_floor = i == 0 ? std::max(0, limits.floor - (running - count.pending)) : 0;
    const int needed = std::max({0, count.queued - count.idle - count.starting, below_floor});
    decision.wanted += count.queued;
    decision.starting += count.starting + count.pending;
    const int room = limits.ceiling - active;
    decision.at_ceiling |= needed - count.pending > room;
    if (const int more = std::min({needed - count.pending, limits.at_once, room}); more > 0) {
      decision.submit[classes[i].gpu] = more;
      active += more;
    }
    std::sort(count.waiting.rbegin(), count.waiting.rend());
    for (int surplus = count.pending - needed, at = 0; at < surplus; ++at) decision.cancel.push_back(count.waiting[at]);
  }
  return decision;
}

}  // namespace pawl
