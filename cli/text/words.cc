#include "cli/text/words.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace pawl {

std::string WorkerStateWord(v1::WorkerState state) { return EnumWords(v1::WorkerState_Name(state), "WORKER_STATE_"); }

std::string ComparisonWord(v1::ComparisonResult result) {
  return result == v1::COMPARISON_RESULT_UNSPECIFIED ? "not compared"
                                                     : EnumWords(v1::ComparisonResult_Name(result), "");
}

std::string CheckWord(v1::Check check) { return EnumWords(v1::Check_Name(check), "CHECK_"); }

std::string GateActionWord(v1::GateAction action) { return EnumWords(v1::GateAction_Name(action), "GATE_ACTION_"); }

std::string ClockText(absl::Time time) { return absl::FormatTime("%H:%M:%S UTC", time, absl::UTCTimeZone()); }

std::string LeftOutText(int untried) {
  return untried == 1 ? "1 change is not in the recording and is not shown"
                      : absl::StrCat(untried, " changes are not in the recording and are not shown");
}

std::string ExtentText(const v1::Dim3& extent) {
  return absl::StrCat(extent.x(), " x ", extent.y(), " x ", extent.z());
}

}  // namespace pawl
