#include "report/sentences.h"

#include <algorithm>
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

std::string TotalGainText(const v1::TotalGain& gain) {
  if (gain.speedup_over_start() <= 0) return "";
  const std::string interval = IntervalText(gain.interval());
  return absl::StrCat(
      "iteration ", gain.iteration(), " measured against the start: ", SpeedupText(gain.speedup_over_start()),
      interval.empty() ? "" : absl::StrCat(" (", interval, ")"),
      gain.multiplied() > 0 ? absl::StrCat("; product of the step speedups ", SpeedupText(gain.multiplied())) : "");
}

std::string TierText(v1::SuccessTier tier) {
  switch (tier) {
    case v1::SUCCESS_TIER_BELOW:
      return "below: the baseline is faster";
    case v1::SUCCESS_TIER_MINIMUM:
      return "minimum: as fast as the baseline";
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

std::string PredictionOutcomeText(const v1::Prediction& prediction, double measured_speedup) {
  const bool failed = prediction.outcome() == v1::Prediction::FAILED;
  const bool time_failed = prediction.time_outcome() == v1::Prediction::FAILED;
  const bool metric_failed = prediction.metric_outcome() == v1::Prediction::FAILED;
  const char* const held = failed ? " as predicted" : "";  // of a part, where the other failed
  std::vector<std::string> parts;
  if (prediction.high() > 0 && measured_speedup > 0) {
    parts.push_back(SpeedupText(measured_speedup));
    if (time_failed) {
      absl::StrAppendFormat(&parts.back(), " is %s %.2fx to %.2fx",
                            measured_speedup < prediction.low() ? "below" : "above", prediction.low(),
                            prediction.high());
    } else {
      parts.back() += held;
    }
  }
  if (!prediction.metric().empty() && prediction.has_before() && prediction.has_after()) {
    const std::string values = absl::StrCat(NumberText(prediction.before()), " → ", NumberText(prediction.after()));
    const char* const stays = prediction.direction() == v1::DIRECTION_MORE   ? " did not rise"
                              : prediction.direction() == v1::DIRECTION_LESS ? " did not fall"
                                                                             : " did not change";
    parts.push_back(metric_failed ? absl::StrCat(prediction.metric(), stays, " (", values, ")")
                                  : absl::StrCat(prediction.metric(), " ", values, held));
  } else if (!prediction.metric().empty()) {
    parts.push_back(absl::StrCat(prediction.metric(), " was not measured"));
  }
  // What failed comes first.
  if (metric_failed && !time_failed) std::reverse(parts.begin(), parts.end());
  return absl::StrCat(OutcomeText(prediction.outcome()), parts.empty() ? "" : ": ", absl::StrJoin(parts, "; "));
}

}  // namespace pawl
