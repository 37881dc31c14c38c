#include "orchestrator/engine/report/report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "orchestrator/engine/report/before_after.h"
#include "orchestrator/engine/report/roofline_points.h"
#include "orchestrator/engine/report/situation.h"
#include "orchestrator/engine/report/size_times.h"
#include "orchestrator/engine/report/stage_plans.h"
#include "orchestrator/engine/search/architecture.h"
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

void AddPatterns(const CampaignState& campaign, v1::Report* report) {
  const std::string architecture = ArchitectureOf(campaign.gpu(), campaign.summary().device());
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
  *report.mutable_variables() = campaign.bundle().variables();
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

}  // namespace pawl
