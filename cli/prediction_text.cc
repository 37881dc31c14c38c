#include "cli/prediction_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/words.h"

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
  std::string text = OutcomeText(prediction.outcome());
  if (prediction.high() > 0) {
    absl::StrAppend(&text, "; time ", measured_speedup > 0 ? absl::StrCat(SpeedupText(measured_speedup), " ") : "",
                    OutcomeText(prediction.time_outcome()));
  }
  if (prediction.metric().empty()) return text;
  absl::StrAppend(&text, "; ", prediction.metric());
  if (prediction.has_before()) absl::StrAppend(&text, " ", NumberText(prediction.before()));
  if (prediction.has_after()) absl::StrAppend(&text, " → ", NumberText(prediction.after()));
  return absl::StrCat(text, " ", OutcomeText(prediction.metric_outcome()));
}

}  // namespace pawl
