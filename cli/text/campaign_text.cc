#include "cli/text/campaign_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/failure.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"
#include "report/sentences.h"

namespace pawl {

namespace {

bool HasFasterBest(const v1::Campaign& campaign) { return campaign.has_best() && campaign.best() > 0; }

// One variant over all sizes, or several of them together.
bool Improved(const v1::Campaign& campaign) {
  return HasFasterBest(campaign) || campaign.portfolio().speedup_over_start() > 1;
}

// A Table drops nothing, so a line that has nothing to say is left out before.
void Line(std::string* text, const char* label, const std::string& value) {
  if (!value.empty()) absl::StrAppendFormat(text, "%-10s %s\n", label, OneLine(value));
}

// Of a goal over several sizes, the time is that of one of them.
std::string GoalSize(const v1::Campaign& campaign) {
  const v1::Goal& goal = campaign.spec().goal();
  return goal.sizes_size() > 1 ? absl::StrCat(" at ", goal.size()) : "";
}

// The same of the best variant, whose time is that of the leg.
std::string BestSize(const v1::Campaign& campaign) {
  const bool in_leg = campaign.legs_size() > 1 && !campaign.has_end_time();
  return in_leg ? absl::StrCat(" at ", campaign.legs(campaign.legs_size() - 1).goal().size()) : GoalSize(campaign);
}

// Start and best were timed in different trials, and perhaps with different data: where that shows, also the time that
// goes with the speedup.
std::string Start(const v1::Campaign& campaign) {
  constexpr double kAlike = 0.05;
  const std::string text = absl::StrCat(TimeText(campaign.start_us()), GoalSize(campaign));
  const double beside_best = campaign.best_us() * campaign.speedup_over_start();
  const bool one_size = campaign.spec().goal().sizes_size() < 2 && campaign.legs_size() < 2;
  if (!one_size || !(beside_best > 0) || std::abs(beside_best / campaign.start_us() - 1) < kAlike) return text;
  return absl::StrCat(text, ", measured alone; beside the best variant ", TimeText(beside_best));
}

std::string Baseline(const v1::Campaign& campaign) {
  if (campaign.baseline_us() <= 0) {
    if (campaign.start_us() <= 0) return "";
    return absl::StrCat("the start variant", campaign.baseline().empty() ? "" : "; ", campaign.baseline());
  }
  return absl::StrCat(TimeText(campaign.baseline_us()), GoalSize(campaign), campaign.baseline().empty() ? "" : "  ",
                      campaign.baseline());
}

std::string Speedup(const v1::Campaign& campaign) {
  if (campaign.speedup_over_start() <= 0) return "";
  std::string text = absl::StrCat(SpeedupText(campaign.speedup_over_start()), " over the start");
  if (campaign.baseline_us() > 0 && campaign.speedup_over_baseline() > 0) {
    absl::StrAppend(&text, ", ", OverBaselineText(campaign), " over the baseline");
  }
  if (campaign.spec().goal().speedup() > 0) {
    absl::StrAppendFormat(&text, " (goal %.2fx)", campaign.spec().goal().speedup());
  }
  return text;
}

}  // namespace

std::string SizesText(const v1::Campaign& campaign) {
  const auto sizes = MeasuredSizes(campaign);
  if (sizes.size() < 2) return "";
  const v1::Goal& goal = campaign.spec().goal();
  using Align = Table::Align;
  Table table({{"  size"},
               {"weight", Align::kRight},
               {"start", Align::kRight},
               {"best", Align::kRight},
               {"baseline", Align::kRight},
               {"over start", Align::kRight},
               {"over baseline", Align::kRight}});
  for (const v1::SizeTime& size : sizes) {
    const auto weight = goal.sizes().find(size.size());
    const bool only = goal.sizes_size() < 2 && size.size() == goal.size();
    table.Add({absl::StrCat("  ", size.size()),
               only                           ? "1"
               : weight == goal.sizes().end() ? "-"
                                              : NumberText(weight->second),
               TimeText(size.start_us()), TimeText(size.best_us()), TimeText(size.baseline_us()),
               SpeedupText(size.best_us() > 0 ? size.start_us() / size.best_us() : 0),
               SpeedupText(size.best_us() > 0 ? size.baseline_us() / size.best_us() : 0)});
  }
  const std::string losses = LossesText(sizes);
  return absl::StrCat("all sizes:\n", table.Text(0), losses.empty() ? "" : absl::StrCat("SLOWER at ", losses, "\n"));
}

std::string PortfolioText(const v1::Campaign& campaign) {
  if (!campaign.has_portfolio()) return "";
  const v1::Portfolio& portfolio = campaign.portfolio();
  using Align = Table::Align;
  Table table({{"  size"},
               {"iteration", Align::kRight},
               {"start", Align::kRight},
               {"time", Align::kRight},
               {"baseline", Align::kRight},
               {"over start", Align::kRight},
               {"over baseline", Align::kRight},
               {"coverage", Align::kRight}});
  for (const v1::Portfolio::Pick& pick : portfolio.picks()) {
    table.Add({absl::StrCat("  ", pick.size()), absl::StrCat(pick.iteration()), TimeText(pick.start_us()),
               TimeText(pick.time_us()), TimeText(pick.baseline_us()), SpeedupText(pick.start_us() / pick.time_us()),
               SpeedupText(pick.baseline_us() / pick.time_us()), absl::StrFormat("%.0f %%", 100 * pick.coverage())});
  }
  std::string text = absl::StrCat("portfolio: ", PortfolioClaim(portfolio), "\n", table.Text(0));
  if (!portfolio.note().empty()) absl::StrAppend(&text, portfolio.note(), "\n");
  return text;
}

std::string SummaryText(const v1::Campaign& campaign, const std::vector<v1::Iteration>& path) {
  const std::string why = WhyText(campaign.state(), campaign.message(), campaign.stop_reason());
  std::string text = absl::StrCat(campaign.name(), " ", StateWord(campaign.state()), OneLine(why), "\n");
  Line(&text, "kernel", absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal())));
  Line(&text, "device", campaign.device());
  if (campaign.spec().priority() != 0) Line(&text, "priority", absl::StrCat(campaign.spec().priority()));
  const v1::Counts& counts = campaign.counts();
  if (counts.tried() + counts.untried() > 0) Line(&text, "tried", CountsText(counts));
  if (campaign.gpu_seconds() > 0) {
    Line(&text, "spent",
         absl::StrCat(SecondsText(campaign.gpu_seconds()), campaign.replay() ? " of recorded GPU time" : " of GPU time",
                      campaign.gpu_busy() > 0 ? absl::StrCat(", GPU busy ", ShareText(campaign.gpu_busy())) : "",
                      campaign.dollars() > 0 ? absl::StrFormat(", %.2f dollars", campaign.dollars()) : ""));
  }
  Line(&text, "baseline", Baseline(campaign));
  if (campaign.start_us() > 0) Line(&text, "start", Start(campaign));
  if (HasFasterBest(campaign)) {
    Line(&text, "best",
         absl::StrCat(TimeText(campaign.best_us()), BestSize(campaign), "  iteration ", campaign.best(),
                      path.empty() ? "" : ": ", path.empty() ? "" : ValuesText(path.back())));
    Line(&text, "speedup", Speedup(campaign));
    Line(&text, "measured", TotalGainText(campaign.total_gain()));
    text += SizesText(campaign);
  } else if (campaign.has_best()) {
    Line(&text, "best",
         campaign.has_portfolio() ? "the start variant: no change was faster over all sizes"
                                  : "the start variant: no change was faster");
  }
  text += PortfolioText(campaign);
  Line(&text, "tier", TierText(campaign.tier()));
  Line(&text, "roof", absl::StrJoin(campaign.roof(), ", "));
  if (path.size() > 1) absl::StrAppend(&text, "kept changes:\n", PathText(path));
  return text;
}

bool IsHeld(const v1::Campaign& campaign) {
  return campaign.waiting_for() == v1::WAITING_FOR_LIMIT || campaign.waiting_for() == v1::WAITING_FOR_MAINTENANCE;
}

int ExitCodeOf(const v1::Campaign& campaign) {
  if (campaign.state() != v1::FINISHED) return kFailed;
  return Improved(campaign) || campaign.stop_reason() == v1::STOP_REASON_GOAL ? kDone : kNoImprovement;
}

std::string CampaignLine(const v1::Campaign& campaign) {
  const v1::Budget& budget = campaign.spec().budget();
  const int tried = campaign.counts().tried();
  std::vector<std::string> parts;
  parts.push_back(budget.iterations() > 0 ? absl::StrFormat("iteration %d of %d", tried, budget.iterations())
                                          : absl::StrFormat("iteration %d", tried));
  if (campaign.speedup_over_baseline() > 0) {
    parts.push_back(absl::StrCat("best ", SpeedupText(campaign.speedup_over_baseline()), " over the ",
                                 campaign.baseline_us() > 0 ? "baseline" : "start"));
  }
  if (campaign.spec().goal().speedup() > 0) {
    parts.push_back(absl::StrCat("goal ", SpeedupText(campaign.spec().goal().speedup())));
  }
  std::vector<std::string> left;
  if (budget.minutes() > 0) left.push_back(SecondsText(60 * std::max(0.0, budget.minutes() - campaign.minutes())));
  if (budget.dollars() > 0) {
    left.push_back(absl::StrFormat("$%.2f", std::max(0.0, budget.dollars() - campaign.dollars())));
  }
  if (!left.empty()) parts.push_back(absl::StrCat(absl::StrJoin(left, " and "), " left"));
  if (campaign.state() == v1::PAUSED || campaign.state() == v1::WAITING) {
    parts.push_back(
        absl::StrCat(StateWord(campaign.state()), campaign.message().empty() ? "" : ": ", campaign.message()));
  }
  return absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal()), ": ", absl::StrJoin(parts, ", "));
}

std::vector<v1::Iteration> KeptPathIn(const std::vector<v1::Iteration>& iterations, int number) {
  std::map<int, const v1::Iteration*> by_number;
  for (const v1::Iteration& iteration : iterations) by_number.emplace(iteration.number(), &iteration);
  std::vector<v1::Iteration> path;
  for (auto at = by_number.find(number); at != by_number.end(); at = by_number.find(number)) {
    path.push_back(*at->second);
    if (!at->second->has_parent() || at->second->parent() >= number) break;
    number = at->second->parent();
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string PathText(const std::vector<v1::Iteration>& path) {
  using Align = Table::Align;
  Table table({{"", Align::kRight}, {""}, {"", Align::kRight}, {"", Align::kRight}});
  for (const v1::Iteration& step : path) {
    const char* expedition = step.expedition() ? " (expedition)" : "";
    table.Add({absl::StrCat("  ", step.number()), absl::StrCat(ChangeText(step.change()), expedition),
               SpeedupText(step.speedup_over_parent()), TimeText(step.time_us())});
  }
  return table.Text(0);
}

}  // namespace pawl
