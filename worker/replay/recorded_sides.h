#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/replay/replay_device.h"
#include "worker/trial/side_by_side.h"

namespace pawl {

// CompareSides from a recording. FailedPrecondition: it lacks a side, and what to do.
absl::StatusOr<SideBySide> CompareRecorded(ReplayDevice& device, const ComparedSide& base,
                                           const ComparedSide& candidate, const std::vector<std::string>& sizes,
                                           TrialObserver& observer);

}  // namespace pawl
