// Words that only the command line says, and those that it shares with reports.
#pragma once

#include <string>

#include "google/protobuf/timestamp.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/trial.pb.h"
#include "report/words.h"

namespace pawl {

std::string WorkerStateWord(v1::WorkerState state);
std::string ComparisonWord(v1::ComparisonResult result);
std::string CheckWord(v1::Check check);
std::string GateActionWord(v1::GateAction action);
// "14:03:21 UTC": a time of today; dates are UtcText's, the same in terminal, report and log.
std::string ClockText(absl::Time time);
// "24 changes are not in the recording and are not shown".
std::string LeftOutText(int untried);
// "128 x 1 x 1".
std::string ExtentText(const v1::Dim3& extent);

}  // namespace pawl
