#include "orchestrator/engine/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "orchestrator/engine/report/report_parts.h"
#include "orchestrator/engine/report/situation.h"
#include "orchestrator/engine/search/patterns.h"

namespace pawl {

namespace {

// Kept iterations from the start to the best.
std::vector<int> PathOf(const CampaignState& campaign) {
  std::vector<int> path;
  for (const v1::Iteration* at = campaign.best(); at != nullptr; at = campaign.Find(at->parent())) {
    path.push_back(at->number());
    if (!at->has_parent() || at->parent() >= at->number()) break;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// The bundle's, and those that edits added.
google::protobuf::RepeatedPtrField<v1::Variable> VariablesOf(const CampaignState& campaign) {
  google::protobuf::RepeatedPtrField<v1::Variable> variables = campaign.bundle().variables();
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.verdict() != v1::KEPT) continue;
    for (const v1::Variable& variable : campaign.BundleAt(iteration.number()).variables()) {
      const bool known = std::any_of(variables.begin(), variables.end(),
                                     [&](const v1::Variable& other) { return other.name() == variable.name(); });
      if (!known) *variables.Add() = variable;
    }
  }
  return variables;
}

void AddPatterns(const CampaignState& campaign, v1::Report* report) {
  const std::string architecture = SmArchitecture(campaign.gpu());
  PatternTable table;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (const std::optional<v1::Pattern> lesson = LessonOf(iteration, campaign.bundle().name(), architecture)) {
      table.Add(*lesson);
    }
  }
  std::vector<v1::Pattern> patterns = table.Of(campaign.bundle().name());
  SortByTried(&patterns);
  for (v1::Pattern& pattern : patterns) *report->add_patterns() = std::move(pattern);
}

}  // namespace

v1::Report ReportOf(const CampaignState& campaign, const Chooser& chooser, const ProfileSet& profiles, absl::Time now) {
  v1::Report report;
  *report.mutable_campaign() = campaign.summary();
  report.mutable_campaign()->set_minutes(absl::ToDoubleMinutes(campaign.Running(now)));
  report.set_summary(campaign.bundle().summary());
  *report.mutable_variables() = VariablesOf(campaign);
  *report.mutable_gpu() = campaign.gpu();
  for (const int number : PathOf(campaign)) report.add_path(number);
  for (v1::StagePlan& plan : StagePlans(campaign.iterations())) *report.add_stages() = std::move(plan);
  for (v1::SizeTime& size : SizeTimes(campaign)) *report.add_sizes() = std::move(size);
  AddPatterns(campaign, &report);
  if (campaign.best() == nullptr) return report;

  if (std::optional<v1::Roofline> roofline = RooflineOf(campaign)) *report.mutable_roofline() = *std::move(roofline);
  AddBeforeAfter(campaign, profiles.metrics, &report);
  for (v1::Finding& finding : profiles.tree.Diagnose(campaign.best_evidence(), campaign.gpu())) {
    *report.add_findings() = std::move(finding);
  }
  for (v1::RankedChange& change : UntriedChanges(campaign, chooser)) *report.add_next() = std::move(change);
  const absl::string_view number = absl::StripPrefix(campaign.summary().name(), "campaigns/");
  report.add_rebuild(absl::StrCat("pawl best ", number, " --output winner"));
  report.add_rebuild(absl::StrCat("pawl verify ", number));
  return report;
}

std::vector<v1::StagePlan> StagePlans(const std::vector<v1::Iteration>& iterations) {
  std::map<v1::Stage, v1::StagePlan> by_stage;
  for (const v1::Iteration& iteration : iterations) {
    std::map<v1::Stage, double> took;  // a stage may come in parts
    for (const v1::StageTime& stage : iteration.stages()) took[stage.stage()] += stage.seconds();
    for (const auto& [stage, seconds] : took) {
      v1::StagePlan& plan = by_stage[stage];
      if (plan.times() > 0) {
        plan.set_planned_seconds(plan.planned_seconds() + plan.total_seconds() / plan.times());
        plan.set_actual_seconds(plan.actual_seconds() + seconds);
      }
      plan.set_stage(stage);
      plan.set_total_seconds(plan.total_seconds() + seconds);
      plan.set_times(plan.times() + 1);
    }
  }
  std::vector<v1::StagePlan> plans;
  for (auto& [stage, plan] : by_stage) plans.push_back(std::move(plan));
  return plans;
}

namespace {

// 0: it can't be planned.
int64_t MemoryOf(const CampaignState& campaign, const v1::Variant& variant, int source, const v1::Size& size) {
  const absl::StatusOr<v1::Plan> plan = campaign.PlanOf(variant, source, size, campaign.gpu());
  return plan.ok() ? PlanBytes(*plan) : 0;
}

// Of an iteration of a goal over several sizes; 0: it was not timed there.
double TimeAt(const v1::Iteration* iteration, const std::string& size) {
  if (iteration == nullptr) return 0;
  for (const v1::SizeComparison& at : iteration->sizes()) {
    if (at.size() == size) return at.time_us();
  }
  return 0;
}

// What a worker measured at this size, of the variant that is the best now.
const v1::SizeTime* MeasuredAt(const v1::Campaign& summary, const std::string& size) {
  if (!summary.has_best() || summary.total_gain().iteration() != summary.best()) return nullptr;
  for (const v1::SizeTime& measured : summary.total_gain().sizes()) {
    if (measured.size() == size) return &measured;
  }
  return nullptr;
}

}  // namespace

std::vector<v1::SizeTime> SizeTimes(const CampaignState& campaign) {
  const v1::Campaign& summary = campaign.summary();
  const bool warm = campaign.bundle().timing() != v1::TIMING_MODE_COLD;  // as baselines are timed
  const bool several = campaign.goal_sizes().size() > 1;                 // then a total has the ratios of each
  std::vector<v1::SizeTime> times;
  for (const v1::Size& size : campaign.bundle().sizes()) {
    v1::SizeTime& time = times.emplace_back();
    if (const v1::SizeTime* measured = MeasuredAt(summary, size.name())) {
      time = *measured;
    } else if (several) {
      time.set_start_us(TimeAt(campaign.Find(0), size.name()));
      time.set_best_us(TimeAt(campaign.best(), size.name()));
    } else if (size.name() == summary.spec().goal().size()) {
      time.set_start_us(summary.start_us());
      time.set_best_us(summary.best_us());
    }
    time.set_size(size.name());
    for (const v1::BaselineTime& baseline : campaign.baselines()) {
      const bool here = warm && baseline.size() == size.name() && time.baseline_us() == 0;
      if (here) time.set_baseline_us(baseline.graph_us());
    }
    // Times of one row must have the ratio that was measured: those of different moments do not.
    const v1::Comparison* beside = several ? nullptr : BesideBaselineOf(summary);
    if (beside != nullptr && size.name() == summary.spec().goal().size()) {
      time.set_baseline_us(time.best_us() * std::exp(beside->mean_log_ratio()));
    }
    if (time.start_bytes() == 0) {
      time.set_start_bytes(MemoryOf(campaign, StartVariant(campaign.bundle()), 0, size));
    }
    if (time.best_bytes() == 0 && campaign.best() != nullptr) {
      const v1::Iteration& best = *campaign.best();
      time.set_best_bytes(MemoryOf(campaign, VariantOf(best), campaign.SourceIdOf(best.number()), size));
    }
  }
  return times;
}

}  // namespace pawl
