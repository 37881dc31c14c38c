#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/trial_build.h"
#include "worker/trial/trial_device.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// The only path of a built variant through a GPU: campaigns and `pawl verify` by RunTrial, `pawl compare` by RunBase
// and RunBesideBase, `pawl record` by MeasureBesideStart, `pawl record` and `pawl check` by ValidateStartVariant. The
// steps are in trial_steps.h; the first one that fails is the last. A candidate's failure is in the result; a status is
// the machine's fault, or CANCELLED.

// Everything a variant must pass before it may be kept, and nothing more once it is known that it will not be.
absl::StatusOr<TrialOutcome> RunTrial(GpuDevice& device, const TrialBuild& build, TrialObserver& observer);

// What another variant is compared with, without a campaign: validated as a start variant is, with its counters.
// `passed`: it was, at another size, and is only called twice at those that the build has.
absl::StatusOr<TrialOutcome> RunBase(GpuDevice& device, const TrialBuild& build, bool passed, TrialObserver& observer);
// The other variant beside it (build.parent): everything it must pass before it would be kept, with its counters
// whether it is faster or not.
absl::StatusOr<TrialOutcome> RunBesideBase(GpuDevice& device, const TrialBuild& build, TrialObserver& observer);

struct MeasuredVariant {
  v1::TrialResult result;
  std::vector<v1::ResourceUse> resources;  // of the launches at the timed size
  std::map<std::string, SideTimes> times;  // at each size that was timed
  bool timed = false;                      // pairs and times of the result stand
};

// Measures a variant beside the start variant (build.parent), at each of build.sizes, for a recording, which profiles
// later. The status may
// also be the bundle's fault: its reference does not run.
absl::StatusOr<MeasuredVariant> MeasureBesideStart(GpuDevice& device, const TrialBuild& build);

// Validates a bundle's start variant, and the bundle's tolerance. The status may also be the bundle's fault.
absl::StatusOr<v1::TrialResult> ValidateStartVariant(GpuDevice& device, const TrialBuild& build);

}  // namespace pawl
