#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/trial/trial_run.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// One step of a trial. It adds what it finds to the run; a candidate that fails is a failure in the run. A status is
// the machine's fault, or CANCELLED. Which steps follow each other is in trial_pipeline.cc.
using TrialStep = absl::Status (*)(TrialRun& run);

// Finds out which inputs validation may use, where the bundle leaves that open and the device does not know yet.
absl::Status ChooseInputs(TrialRun& run);

// The start variant at a size of the candidate's; null: it does not build there.
absl::StatusOr<const BuiltSize*> StartAt(TrialRun& run, const v1::Plan& plan);

// Validate at every size that the candidate was built at, smallest first, and stop at the first that fails.
absl::Status ValidateTwice(TrialRun& run);
absl::Status ValidateStart(TrialRun& run);     // 20 times, and the bundle's tolerance itself
absl::Status ValidateAgain(TrialRun& run);     // 20 times with fresh inputs, at all sizes of the ladder and more hidden
                                               // ones, with every distribution at all small sizes: of what is about to
                                               // be kept
absl::Status ValidateSurprise(TrialRun& run);  // the same, of one more than ten times as fast as its parent only

// Starts the process in which the next comparison that is confirmed is timed, while nothing is.
absl::Status OpenSpare(TrialRun& run);

// Begins to build what ValidateAgain needs, in the background, where that has not begun.
void BuildFurther(TrialRun& run);

// Notes inputs that the bundle's reference does not look at.
absl::Status CheckReference(TrialRun& run);

// Time at the timed size.
absl::Status CompareWithParent(TrialRun& run);  // by the protocol of the keep rule, confirmed in further processes
absl::Status TimeBesideParent(TrialRun& run);   // the first pairs of that only
absl::Status TimeAlone(TrialRun& run);          // against itself

absl::Status CheckRoofline(TrialRun& run);  // no time may be below what the GPU can do

// Time candidate and parent at every size of the ladder, for the report. A size that does not fit, or whose start
// variant takes too long, is left out. Wrong outputs fail the candidate here too.
absl::Status TimeLadder(TrialRun& run);

// compute-sanitizer at the small sizes, where it is installed and the campaign does not leave it out. It runs beside
// the steps between these two, none of which may time anything.
absl::Status BeginSanitizing(TrialRun& run);
absl::Status EndSanitizing(TrialRun& run);
// Has the campaign run it later, over several kept variants at once (SanitizeKept), before it claims this one.
absl::Status SanitizeLater(TrialRun& run);
absl::Status SanitizeKept(TrialRun& run);
// memcheck at the sizes that are timed; racecheck and initcheck at the sizes of the ladder that fit into a stated time.
absl::Status SanitizeLargeSizes(TrialRun& run);

absl::Status ProfileCandidate(TrialRun& run);

// What the roofline and the goal are held against.
absl::Status TimeCopy(TrialRun& run);
absl::Status TimeBaseline(TrialRun& run);

// Baseline and candidate interleaved in the baseline's process, for the report: it decides nothing about the candidate.
absl::Status TimeBesideBaseline(TrialRun& run);

// Builds and runs what `pawl best --output` writes. It decides nothing about the candidate.
absl::Status RunHandOff(TrialRun& run);

// The bandwidth of a plain device-to-device copy in GB/s, bytes read plus written; 0: the runner could not measure it.
absl::StatusOr<double> CopyBandwidth(GpuDevice& device);

}  // namespace pawl
