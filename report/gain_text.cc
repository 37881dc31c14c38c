#include "report/gain_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
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
  return absl::StrCat("iteration ", gain.iteration(), " beside the start: ", SpeedupText(gain.speedup_over_start()),
                      interval.empty() ? "" : absl::StrCat(" (", interval, ")"),
                      gain.multiplied() > 0 ? absl::StrCat("; by the steps since the last such comparison ",
                                                           SpeedupText(gain.multiplied()))
                                            : "");
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

}  // namespace pawl
