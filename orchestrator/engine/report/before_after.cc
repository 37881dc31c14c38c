#include <cmath>
#include <map>
#include <string>

#include "orchestrator/engine/report/report_parts.h"
#include "profiles/diagnosis.h"

namespace pawl {
namespace {

// Shares of peaks, the whole before its parts.
constexpr const char* kSpeedOfLight[] = {"sm_throughput", "memory_throughput", "dram_throughput",
                                         "l2_throughput", "l1_throughput",     "tensor_use"};
constexpr const char* kChanges[] = {"occupancy",
                                    "occupancy_limit",
                                    "waves",
                                    "bank_conflict_share",
                                    "registers",
                                    "local_bytes",
                                    "shared_per_block",
                                    "grid_size",
                                    "block_size",
                                    "sector_use",
                                    "load_width",
                                    "dram_bytes",
                                    "dram_excess",
                                    "l1_hit_rate",
                                    "l2_hit_rate",
                                    "instructions",
                                    "issue_active",
                                    "warps_per_scheduler",
                                    "long_scoreboard_share",
                                    "barrier_share"};

using Values = std::map<std::string, double>;

// With metrics that were defined after the evidence was taken.
Values ValuesOf(const v1::Evidence* evidence, const Metrics& metrics, const v1::GpuInfo& gpu) {
  const v1::LaunchEvidence* launch = evidence == nullptr ? nullptr : LongestLaunch(*evidence);
  return launch == nullptr ? Values() : metrics.Derive(nullptr, *launch, gpu);
}

template <typename Names>
void AddAll(const Names& names, const Metrics& metrics, const Values& start, const Values& best,
            google::protobuf::RepeatedPtrField<v1::BeforeAfter>* added) {
  for (const char* name : names) {
    const Metric* metric = metrics.Find(name);
    const auto before = start.find(name), after = best.find(name);
    if (metric == nullptr || (before == start.end() && after == best.end())) continue;
    v1::BeforeAfter& row = *added->Add();
    row.set_metric(name);
    row.set_unit(metric->unit);
    row.set_meaning(metric->meaning);
    if (before != start.end() && std::isfinite(before->second)) row.set_start(before->second);
    if (after != best.end() && std::isfinite(after->second)) row.set_best(after->second);
  }
}

}  // namespace

void AddBeforeAfter(const CampaignState& campaign, const Metrics& metrics, v1::Report* report) {
  const Values start = ValuesOf(campaign.EvidenceOf(0), metrics, campaign.gpu());
  const Values best = ValuesOf(&campaign.best_evidence(), metrics, campaign.gpu());
  AddAll(kSpeedOfLight, metrics, start, best, report->mutable_speed_of_light());
  AddAll(kChanges, metrics, start, best, report->mutable_changes());
}

}  // namespace pawl
