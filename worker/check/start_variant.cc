#include "worker/check/start_variant.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/space.h"
#include "worker/trial/roofline_check.h"
#include "worker/trial/timer.h"
#include "worker/trial/trial_pipeline.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr int kRoughPairs = 2, kRoughMeasurements = 2;
constexpr double kLoose = 4;  // a tolerance above this many times the start variant's error gets a warning

v1::Tolerance ToleranceFor(const v1::Bundle& bundle, const std::string& output) {
  for (const v1::Tensor& tensor : bundle.tensors()) {
    if (tensor.name() == output && tensor.has_tolerance()) return tensor.tolerance();
  }
  return bundle.tolerance();
}

std::vector<std::string> LooseTolerances(const v1::Bundle& bundle,
                                         const google::protobuf::RepeatedPtrField<v1::OutputError>& errors) {
  std::vector<std::string> warnings;
  for (const v1::OutputError& error : errors) {
    const v1::Tolerance tolerance = ToleranceFor(bundle, error.tensor());
    const bool exact = error.max_absolute() == 0;  // nothing to compare the tolerance with
    if (exact || tolerance.absolute() <= kLoose * error.max_absolute() ||
        tolerance.relative() <= kLoose * error.relative())
      continue;
    warnings.push_back(absl::StrFormat(
        "the tolerance (absolute %g, relative %g) is more than %g times the start variant's error in %s "
        "(%.3g, %.3g): consider tightening it",
        tolerance.absolute(), tolerance.relative(), kLoose, error.tensor(), error.max_absolute(), error.relative()));
  }
  return warnings;
}

}  // namespace

absl::StatusOr<StartVariantRun> RunStartVariant(GpuDevice& device, const v1::Bundle& bundle) {
  const SizesToValidate sizes = AllSizes(bundle);
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), sizes.all, device.gpu());
  if (!built.ok()) return built.status();
  TrialBuild build;
  build.bundle = std::make_shared<const v1::Bundle>(bundle);
  build.own_hash = BundleHash(bundle);
  build.size = bundle.goal().size();
  build.small = sizes.small;
  build.candidate = *std::move(built);
  build.failure = build.candidate.failure;
  absl::StatusOr<v1::TrialResult> result = ValidateStartVariant(device, build);
  if (!result.ok()) return result.status();
  StartVariantRun run;
  run.built = std::move(build.candidate);
  if (result->has_failure()) run.failure = result->failure();
  run.warnings = LooseTolerances(bundle, result->errors());
  if (!result->notes().empty()) run.warnings.push_back(result->notes());
  return run;
}

absl::StatusOr<SlowestSize> TimeSlowestSize(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built) {
  SlowestSize slowest;
  for (const v1::Size& size : bundle.sizes()) {
    const BuiltSize* at = built.Find(size.name());
    if (at == nullptr) continue;
    TimingOptions options;
    options.pairs = kRoughPairs;
    options.measurements = kRoughMeasurements;
    options.checked_calls = 1;
    const absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, *at, *at, options);
    if (!timing.ok()) return timing.status();
    if (timing->failure) return absl::FailedPreconditionError(timing->failure->message());
    const v1::CompareReply& times = timing->times;
    const double us = bundle.timing() == v1::TIMING_MODE_COLD ? times.candidate_cold_us() : times.candidate_warm_us();
    const std::optional<v1::Failure> beyond =
        BelowRoofline(device.gpu().name(), bundle, at->plan, times.candidate_warm_us(), times.candidate_cold_us());
    if (beyond && slowest.beyond.empty()) {
      slowest.beyond = absl::StrCat("[work] says more than this GPU can do: the start variant's ", beyond->message(),
                                    " (at ", size.name(), "). Trials of such a time are rejected");
    }
    if (us >= slowest.microseconds) {
      slowest.size = size.name();
      slowest.microseconds = us;
    }
  }
  return slowest;
}

}  // namespace pawl
