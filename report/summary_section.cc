#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/sections.h"
#include "report/sentences.h"
#include "report/words.h"

namespace pawl {
namespace {

Tone StateTone(const v1::Campaign& campaign) {
  switch (campaign.state()) {
    case v1::FAILED:
      return Tone::kBad;
    case v1::RUNNING:
      return Tone::kRunning;
    case v1::CANCELLED:
    case v1::PAUSED:
      return Tone::kDim;
    default:
      return Tone::kPlain;
  }
}

Tone TierTone(v1::SuccessTier tier) {
  switch (tier) {
    case v1::SUCCESS_TIER_TARGET:
    case v1::SUCCESS_TIER_STRETCH:
      return Tone::kGood;
    case v1::SUCCESS_TIER_BELOW:
      return Tone::kBad;
    default:
      return Tone::kPlain;
  }
}

// Whether the two times are those of the ratio: a campaign's were measured at different moments.
bool AreOf(double ratio, double slow_us, double fast_us) {
  constexpr double kAlike = 0.01;
  return fast_us > 0 && ratio > 0 && std::abs(slow_us / fast_us / ratio - 1) < kAlike;
}

struct TwoTimes {
  double slow_us = 0;
  double fast_us = 0;
};

// Start and final variant, from the comparison that gave the ratio between them; where its times are not known, as each
// was timed when it was kept.
TwoTimes StartAndFinal(const v1::Campaign& campaign) {
  for (const v1::SizeTime& size : MeasuredSizes(campaign)) {
    const bool paired = size.size() == campaign.spec().goal().size() &&
                        AreOf(campaign.speedup_over_start(), size.start_us(), size.best_us());
    if (paired) return {size.start_us(), size.best_us()};
  }
  return {campaign.start_us(), campaign.best_us()};
}

std::string BaselineTile(const v1::Campaign& campaign) {
  const v1::BesideBaseline& beside = campaign.total_gain().beside_baseline();
  const bool interleaved = campaign.has_best() && campaign.total_gain().iteration() == campaign.best() &&
                           AreOf(campaign.speedup_over_baseline(), beside.baseline_us(), beside.best_us());
  if (!interleaved) return TimeText(campaign.baseline_us());
  return absl::StrCat(TimeText(beside.baseline_us()), " (final ", TimeText(beside.best_us()), ")");
}

// What a reader looks for first. A campaign whose start variant failed has none of it.
Facts Tiles(const v1::Campaign& campaign) {
  Facts tiles{.prominent = true};
  const auto tile = [&](const char* name, const std::string& value, Tone tone = Tone::kPlain) {
    tiles.facts.push_back({name, {value, tone}});
  };
  const TwoTimes times = StartAndFinal(campaign);
  const bool paired = AreOf(campaign.speedup_over_start(), times.slow_us, times.fast_us);
  tile(paired ? "start" : "start, in iteration 0", TimeText(times.slow_us));
  tile(paired ? "final" : "final, when it was kept", TimeText(times.fast_us));
  if (campaign.baseline_us() > 0) tile("baseline", BaselineTile(campaign));
  tile("over the start", SpeedupText(campaign.speedup_over_start()));
  if (campaign.baseline_us() > 0) {
    tile("over the baseline", OverBaselineText(campaign),
         campaign.speedup_over_baseline() >= 1 ? Tone::kGood : Tone::kBad);
  }
  tile("tier", TierWord(campaign.tier()), TierTone(campaign.tier()));
  return tiles;
}

std::string BaselineText(const v1::Campaign& campaign) {
  if (campaign.baseline_us() > 0) {
    return campaign.baseline().empty() ? TimeText(campaign.baseline_us()) : campaign.baseline();
  }
  return absl::StrCat("the start variant", campaign.baseline().empty() ? "" : "; ", campaign.baseline());
}

}  // namespace

Section SummarySection(const v1::Report& report) {
  const v1::Campaign& campaign = report.campaign();
  Section section{"summary", "Summary", {}};
  if (campaign.start_us() > 0) section.blocks.push_back(Tiles(campaign));
  Facts facts;
  const auto fact = [&](const char* name, const std::string& value, Tone tone = Tone::kPlain) {
    if (!value.empty()) facts.facts.push_back({name, {value, tone}});
  };
  fact("state",
       absl::StrCat(StateWord(campaign.state()), WhyText(campaign.state(), campaign.message(), campaign.stop_reason())),
       StateTone(campaign));
  if (campaign.start_us() > 0) fact("baseline", BaselineText(campaign));
  if (campaign.spec().goal().speedup() > 0) {
    const v1::Goal& goal = campaign.spec().goal();
    fact("goal", absl::StrCat(NumberText(goal.speedup()), "x over the baseline",
                              goal.sizes_size() > 1 ? absl::StrCat(", ", ObjectiveText(goal)) : ""));
  }
  fact("tier", TierText(campaign.tier()));
  if (report.iterations_size() > 0) fact("changes tried", CountsText(campaign.counts()));
  fact("measured", TotalGainText(campaign.total_gain()));
  fact("slower at", LossesText(report.sizes()), Tone::kBad);
  if (campaign.total_gain().has_failure()) {
    fact("reverted", campaign.total_gain().failure().message(), Tone::kBad);
  }
  fact("hardware limit reached", absl::StrJoin(campaign.roof(), ", "));
  if (campaign.has_best() && campaign.best() == 0) {
    fact("best", campaign.has_portfolio() ? "the start variant: nothing was faster over all sizes"
                                          : "the start variant: nothing was faster");
  }
  if (campaign.has_portfolio()) fact("portfolio", PortfolioClaim(campaign.portfolio()));
  section.blocks.push_back(facts);
  if (campaign.start_us() > 0) return section;
  // The start variant failed: its failure is all there is to report.
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.number() != 0) continue;
    section.blocks.push_back(Paragraph{"The start variant did not pass validation, so no change was tried:"});
    section.blocks.push_back(
        Code{{iteration.has_failure() && !iteration.failure().message().empty() ? iteration.failure().message()
                                                                                : iteration.reason()}});
    return section;
  }
  section.blocks.push_back(Paragraph{"No variant was measured.", Tone::kDim});
  return section;
}

}  // namespace pawl
