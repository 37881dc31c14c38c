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

std::string TotalGainText(const v1::TotalGain& gain) {
  if (gain.speedup_over_start() <= 0) return "";
  const std::string interval = IntervalText(gain.interval());
  return absl::StrCat(
      "iteration ", gain.iteration(), " beside the start: ", SpeedupText(gain.speedup_over_start()),
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
  // A part says how it went only where that is not how the whole went.
  const auto outcome = [&](v1::Prediction::Outcome part) {
    return part == prediction.outcome() ? "" : absl::StrCat(" ", OutcomeText(part));
  };
  std::vector<std::string> parts;
  if (prediction.high() > 0 && measured_speedup > 0) {
    parts.push_back(absl::StrCat(SpeedupText(measured_speedup), outcome(prediction.time_outcome())));
  }
  if (!prediction.metric().empty() && prediction.has_before() && prediction.has_after()) {
    parts.push_back(absl::StrCat(prediction.metric(), " ", NumberText(prediction.before()), " → ",
                                 NumberText(prediction.after()), outcome(prediction.metric_outcome())));
  } else if (!prediction.metric().empty()) {
    parts.push_back(absl::StrCat(prediction.metric(), " ", OutcomeText(prediction.metric_outcome())));
  }
  return absl::StrCat(OutcomeText(prediction.outcome()), parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "));
}

}  // namespace pawl
