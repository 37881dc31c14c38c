#include "report/sentences.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/words.h"

namespace pawl {

std::string IntervalText(const v1::Comparison& interval) {
  if (interval.pairs() <= 0) return "";
  return absl::StrCat(SpeedupText(std::exp(interval.lower())), " to ", SpeedupText(std::exp(interval.upper())), " in ",
                      interval.pairs(), interval.pairs() == 1 ? " pair" : " pairs");
}

namespace {

// A few pairs do not tell a smaller difference from noise.
constexpr double kNoLoss = 0.99;

std::string BoundsText(const v1::Comparison& interval) {
  return absl::StrCat(SpeedupText(std::exp(interval.lower())), " to ", SpeedupText(std::exp(interval.upper())));
}

std::string BesideText(const v1::BesideBaseline& beside) {
  if (!beside.error().empty()) return absl::StrCat("; not timed beside the baseline: ", beside.error());
  if (beside.interval().pairs() < 2) return "";
  return absl::StrCat("; interleaved with the baseline: ", SpeedupText(std::exp(beside.interval().mean_log_ratio())),
                      " (", BoundsText(beside.interval()), " in ", beside.interval().pairs(), " placements)");
}

}  // namespace

std::string TotalGainText(const v1::TotalGain& gain) {
  if (gain.speedup_over_start() <= 0) return "";
  const std::string interval = IntervalText(gain.interval());
  return absl::StrCat(
      "iteration ", gain.iteration(), " against the start: ", SpeedupText(gain.speedup_over_start()),
      interval.empty() ? "" : absl::StrCat(" (", interval, ")"),
      gain.multiplied() > 0 ? absl::StrCat("; estimated from the steps: ", SpeedupText(gain.multiplied())) : "",
      BesideText(gain.beside_baseline()));
}

std::string OverBaselineText(const v1::Campaign& campaign) {
  const std::string speedup = SpeedupText(campaign.speedup_over_baseline());
  const v1::TotalGain& total = campaign.total_gain();
  const v1::Comparison& interval = total.beside_baseline().interval();
  if (!campaign.has_best() || total.iteration() != campaign.best() || interval.pairs() < 2) return speedup;
  return absl::StrCat(speedup, " (", BoundsText(interval), ")");
}

google::protobuf::RepeatedPtrField<v1::SizeTime> MeasuredSizes(const v1::Campaign& campaign) {
  const v1::TotalGain& total = campaign.total_gain();
  if (!campaign.has_best() || total.iteration() != campaign.best() || total.has_failure()) return {};
  google::protobuf::RepeatedPtrField<v1::SizeTime> sizes = total.sizes();
  // The ratio that was measured interleaved, as in the summary.
  for (v1::SizeTime& size : sizes) {
    const bool interleaved = campaign.spec().goal().sizes_size() < 2 && size.size() == campaign.spec().goal().size() &&
                             total.beside_baseline().interval().pairs() > 1;
    if (interleaved) {
      size.set_baseline_us(size.best_us() * std::exp(total.beside_baseline().interval().mean_log_ratio()));
    }
  }
  return sizes;
}

std::string LossesText(const google::protobuf::RepeatedPtrField<v1::SizeTime>& sizes) {
  std::vector<std::string> losses;
  for (const v1::SizeTime& size : sizes) {
    if (!(size.best_us() > 0)) continue;
    std::vector<std::string> slower;
    const auto than = [&](double us, const char* whose) {
      if (!(us > 0) || us / size.best_us() >= kNoLoss) return;
      slower.push_back(
          absl::StrCat(SpeedupText(us / size.best_us()), " the ", whose, slower.empty() ? "'s speed" : "'s"));
    };
    than(size.start_us(), "start");
    than(size.baseline_us(), "baseline");
    if (!slower.empty()) losses.push_back(absl::StrCat(size.size(), ": ", absl::StrJoin(slower, ", ")));
  }
  return absl::StrJoin(losses, "; ");
}

std::string RuleText(const v1::Portfolio& portfolio) {
  if (portfolio.members_size() == 1) {
    return absl::StrCat("iteration ", portfolio.members(0).iteration(), " at every size");
  }
  std::vector<std::string> parts;
  for (const v1::Portfolio::Member& member : portfolio.members()) {
    std::vector<std::string> bounds;
    for (const v1::Portfolio::Bound& bound : member.bounds()) {
      bounds.push_back(absl::StrCat(absl::StrJoin(bound.sizes(), "*"), bound.above() ? " > " : " <= ", bound.limit()));
    }
    parts.push_back(bounds.empty()
                        ? absl::StrCat("otherwise iteration ", member.iteration())
                        : absl::StrCat("iteration ", member.iteration(), " where ", absl::StrJoin(bounds, " and ")));
  }
  return absl::StrJoin(parts, ", ");
}

std::string PortfolioClaim(const v1::Portfolio& portfolio) {
  const double over_baseline = portfolio.speedup_over_baseline();
  return absl::StrCat(SpeedupText(portfolio.speedup_over_start()), " over the start",
                      over_baseline > 0 ? absl::StrCat(", ", SpeedupText(over_baseline), " over the baseline") : "",
                      "; ", RuleText(portfolio));
}

std::string TierText(v1::SuccessTier tier) {
  switch (tier) {
    case v1::SUCCESS_TIER_BELOW:
      return "below: slower than the baseline";
    case v1::SUCCESS_TIER_MINIMUM:
      return "minimum: at least as fast as the baseline";
    case v1::SUCCESS_TIER_TARGET:
      return "target: the goal is reached";
    case v1::SUCCESS_TIER_STRETCH:
      return "stretch: well beyond the goal";
    default:
      return "";
  }
}

std::string PredictedText(const v1::Prediction& prediction) {
  std::string text;
  if (prediction.high() > 0) {
    text = absl::StrFormat("%.2fx to %.2fx as fast as its parent", prediction.low(), prediction.high());
  }
  if (!prediction.metric().empty()) {
    const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? " rises"
                        : prediction.direction() == v1::DIRECTION_LESS ? " falls"
                                                                       : " moves";
    absl::StrAppend(&text, text.empty() ? "" : ", and ", prediction.metric(), moves);
  }
  return text.empty() ? prediction.text() : text;
}

namespace {

// A part of a prediction that went as the whole did needs no words; any other says how it went.
std::string PartOutcome(v1::Prediction::Outcome part, v1::Prediction::Outcome whole) {
  if (part == whole) return "";
  return part == v1::Prediction::CAME_TRUE ? " as predicted" : absl::StrCat(" ", OutcomeText(part));
}

std::string SpeedupPart(const v1::Prediction& prediction, double measured) {
  if (prediction.time_outcome() != v1::Prediction::FAILED) {
    return absl::StrCat(SpeedupText(measured), PartOutcome(prediction.time_outcome(), prediction.outcome()));
  }
  return measured < prediction.low()
             ? absl::StrFormat("%s is below the predicted %.2fx", SpeedupText(measured), prediction.low())
             : absl::StrFormat("%s is above the predicted %.2fx", SpeedupText(measured), prediction.high());
}

std::string MetricPart(const v1::Prediction& prediction) {
  if (!prediction.has_before() || !prediction.has_after()) {
    return absl::StrCat(prediction.metric(), " ", OutcomeText(prediction.metric_outcome()));
  }
  const std::string values = absl::StrCat(NumberText(prediction.before()), " → ", NumberText(prediction.after()));
  if (prediction.metric_outcome() != v1::Prediction::FAILED) {
    return absl::StrCat(prediction.metric(), " ", values,
                        PartOutcome(prediction.metric_outcome(), prediction.outcome()));
  }
  const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? "rise"
                      : prediction.direction() == v1::DIRECTION_LESS ? "fall"
                                                                     : "change";
  return absl::StrCat(prediction.metric(), " did not ", moves, " (", values, ")");
}

}  // namespace

std::string PredictionOutcomeText(const v1::Prediction& prediction, double measured_speedup) {
  std::vector<std::string> parts;
  if (prediction.high() > 0 && measured_speedup > 0) parts.push_back(SpeedupPart(prediction, measured_speedup));
  if (!prediction.metric().empty()) parts.push_back(MetricPart(prediction));
  return absl::StrCat(OutcomeText(prediction.outcome()), parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "));
}

}  // namespace pawl
