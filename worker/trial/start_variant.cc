#include "worker/trial/start_variant.h"

#include "absl/strings/str_format.h"
#include "kernels/space.h"
#include "worker/trial/validator.h"

namespace pawl {
namespace {

constexpr double kLoose = 4;  // a tolerance above so many times the start variant's error is worth a look

}  // namespace

absl::StatusOr<StartVariantRun> RunStartVariant(CudaDevice& device, const v1::Bundle& bundle,
                                                const std::vector<v1::Size>& sizes) {
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), sizes, device.gpu());
  if (!built.ok()) return built.status();
  StartVariantRun run;
  run.built = *std::move(built);
  run.failure = run.built.failure;
  if (run.failure) return run;
  absl::StatusOr<Validation> validation = Validate(device, bundle, run.built, {.repeats = 20, .self_test = true});
  if (!validation.ok()) return validation.status();
  run.failure = validation->failure;
  for (const v1::OutputError& error : validation->errors[bundle.goal().size()]) {
    const v1::Tolerance& tolerance = bundle.tolerance();
    const bool exact = error.max_absolute() == 0;  // nothing to compare the tolerance with
    if (exact || tolerance.absolute() <= kLoose * error.max_absolute() ||
        tolerance.relative() <= kLoose * error.relative())
      continue;
    run.warnings.push_back(absl::StrFormat(
        "the tolerance (absolute %g, relative %g) is more than %g times the start variant's error in %s "
        "(%.3g, %.3g): consider tightening it",
        tolerance.absolute(), tolerance.relative(), kLoose, error.tensor(), error.max_absolute(), error.relative()));
  }
  return run;
}

}  // namespace pawl
