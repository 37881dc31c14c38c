#include "report/prediction_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/words.h"

namespace pawl {

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
