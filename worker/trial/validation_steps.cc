// The steps of a trial that say whether a variant is right.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "worker/trial/trial_steps.h"
#include "worker/validate/blind_reference.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

// Tensors of a size at which racecheck and initcheck run: they slow a kernel down up to a thousand times, and take
// about 20 s for this much.
constexpr int64_t kSlowToolsBytes = int64_t{16} << 20;
constexpr double kSurprise = 10;  // a larger speedup is not believed before it was validated again

// Without scratch, which a candidate may make as large as it likes.
int64_t ContractBytes(const v1::Plan& plan) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_SCRATCH) bytes += TensorBytes(tensor);
  }
  return bytes;
}

absl::Status ValidateSizes(TrialRun& run, const BuiltVariant& built, const ValidationOptions& options) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  absl::StatusOr<Validation> validation = Validate(run.device, run.bundle, built, options);
  if (!validation.ok()) {
    const std::optional<v1::Failure> failure = run.ReferenceFailure(validation.status(), v1::STAGE_VALIDATE);
    if (!failure) return validation.status();
    run.Fail(*failure);
    return absl::OkStatus();
  }
  const std::vector<v1::OutputError>& errors = validation->errors[run.build.size];
  if (!errors.empty()) run.result().mutable_errors()->Assign(errors.begin(), errors.end());
  const std::vector<v1::ResourceUse>& resources = validation->resources[run.build.size];
  if (!resources.empty()) run.resources = resources;
  if (validation->failure) run.Fail(*validation->failure);
  return absl::OkStatus();
}

// The start variant at a size of the candidate's.
absl::StatusOr<const BuiltSize*> StartAt(TrialRun& run, const v1::Plan& plan) {
  const auto [known, fresh] = run.starts.try_emplace(plan.size());
  if (fresh) {
    v1::Size size;
    size.set_name(plan.size());
    *size.mutable_values() = plan.sizes();
    absl::StatusOr<BuiltVariant> built =
        BuildVariant(run.device.builder(), *run.build.before_edits, StartVariant(*run.build.before_edits), {size},
                     run.device.gpu(), run.device.stopped());
    if (!built.ok()) return built.status();
    if (!built->failure) known->second = built->sizes.front();
  }
  return known->second ? &*known->second : nullptr;
}

ValidationOptions OptionsFor(TrialRun& run, int repeats, InputVariety variety) {
  ValidationOptions options;
  options.repeats = repeats;
  options.small = run.build.small;
  options.inputs = run.inputs;
  options.variety = variety;
  if (run.build.parent) options.start = [&run](const v1::Plan& at) { return StartAt(run, at); };
  return options;
}

absl::Status ValidateAndReportEachSize(TrialRun& run, ValidationOptions options) {
  std::string at;
  absl::Time since = absl::Now();
  const auto ended = [&] {
    if (!at.empty()) run.validate_seconds[at] = absl::ToDoubleSeconds(absl::Now() - since);
  };
  options.report = [&](const std::string& size) {
    ended();
    at = size;
    since = absl::Now();
    run.Report(v1::STAGE_VALIDATE, absl::StrCat("validate at ", size));
  };
  const absl::Status status = ValidateSizes(run, run.build.candidate, options);
  ended();
  return status;
}

// Hidden sizes that were not drawn before.
absl::Status ValidateAtMoreSizes(TrialRun& run) {
  const std::vector<v1::Size> more = MoreHiddenSizes(run.bundle, SecretSeed());
  if (more.empty()) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> built = BuildVariant(run.device.builder(), run.bundle, run.build.candidate.variant, more,
                                                    run.device.gpu(), run.device.stopped());
  if (!built.ok()) return built.status();
  if (built->failure) {
    run.Fail(*built->failure);
    return absl::OkStatus();
  }
  ValidationOptions options = OptionsFor(run, 2, InputVariety::kEverywhere);
  options.small = more.size();
  return ValidateSizes(run, *built, options);
}

// Next to the size that is timed. Where the start variant is wrong there too, the bundle does not ask for it.
absl::Status ValidateBesideGoal(TrialRun& run) {
  v1::Size goal;
  goal.set_name(run.build.size);
  *goal.mutable_values() = run.build.at().plan.sizes();
  const std::optional<v1::Size> size = SizeBeside(run.bundle, goal, SecretSeed());
  if (!size) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> built = BuildVariant(run.device.builder(), run.bundle, run.build.candidate.variant,
                                                    {*size}, run.device.gpu(), run.device.stopped());
  if (!built.ok()) return built.status();
  ValidationOptions options;
  const auto validate = [&](const BuiltVariant& variant) { return Validate(run.device, run.bundle, variant, options); };
  std::optional<v1::Failure> failure = built->failure;
  if (!failure) {
    const StageWatch watch(run, v1::STAGE_VALIDATE);
    absl::StatusOr<Validation> validation = validate(*built);
    if (!validation.ok()) {  // of the reference: it need not know this size
      return run.ReferenceFailure(validation.status(), v1::STAGE_VALIDATE) ? absl::OkStatus() : validation.status();
    }
    failure = validation->failure;
  }
  if (!failure) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> start =
      BuildVariant(run.device.builder(), *run.build.before_edits, StartVariant(*run.build.before_edits), {*size},
                   run.device.gpu(), run.device.stopped());
  if (!start.ok()) return start.status();
  if (start->failure) return absl::OkStatus();
  const absl::StatusOr<Validation> of_start = validate(*start);
  if (!of_start.ok()) return of_start.status();
  if (!of_start->failure) run.Fail(*failure);
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseInputs(TrialRun& run) {
  run.inputs = DistributionsFor(run.bundle);
  if (!LeavesRangeOpen(run.bundle)) return absl::OkStatus();
  if (std::optional<InputMagnitudes> known = run.device.input_limits().Find(run.build.hash())) {
    run.inputs = *std::move(known);
    return absl::OkStatus();
  }
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  const bool is_start = !run.build.parent && !run.build.start;
  run.inputs.clear();
  if (!is_start && !run.build.start) return absl::OkStatus();
  absl::StatusOr<std::optional<FoundMagnitudes>> found =
      FindMagnitudes(run.device, run.bundle, is_start ? run.build.candidate : *run.build.start, run.build.small);
  if (absl::IsInvalidArgument(found.status()) || absl::IsResourceExhausted(found.status())) {
    return absl::OkStatus();  // the reference's fault: validating says so
  }
  if (!found.ok()) return found.status();
  if (!*found) return absl::OkStatus();  // so does this
  run.inputs = (*found)->magnitudes;
  if (is_start) run.Note((*found)->note);
  run.device.input_limits().Put(run.build.hash(), (*found)->magnitudes);
  return absl::OkStatus();
}

absl::Status ValidateTwice(TrialRun& run) {
  return ValidateAndReportEachSize(run, OptionsFor(run, 2, InputVariety::kSpread));
}

absl::Status ValidateStart(TrialRun& run) {
  ValidationOptions options = OptionsFor(run, 20, InputVariety::kEverywhere);
  options.self_test = true;
  return ValidateAndReportEachSize(run, options);
}

absl::Status ValidateAgain(TrialRun& run) {
  run.Report(v1::STAGE_VALIDATE, "validate 20 times with fresh inputs");
  if (absl::Status status = ValidateAtMoreSizes(run); !status.ok() || run.failed()) return status;
  if (absl::Status status = ValidateBesideGoal(run); !status.ok() || run.failed()) return status;
  return ValidateSizes(run, run.build.candidate, OptionsFor(run, 20, InputVariety::kEverywhere));
}

absl::Status ValidateSurprise(TrialRun& run) {
  const bool surprising = std::any_of(run.times.begin(), run.times.end(), [&](const auto& timed) {
    const SideTimes& times = timed.second;
    return run.DecidingUs(times.parent_warm_us, times.parent_cold_us) >
           kSurprise * run.DecidingUs(times.warm_us, times.cold_us);
  });
  if (!surprising) return absl::OkStatus();
  return ValidateAgain(run);
}

absl::Status CheckReference(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  const absl::StatusOr<std::vector<std::string>> blind = BlindInputs(run.device, run.bundle);
  if (blind.ok()) run.Note(BlindReferenceWarning(*blind));
  // A reference that does not run is for those steps to judge that need it.
  if (absl::IsInvalidArgument(blind.status()) || absl::IsResourceExhausted(blind.status())) return absl::OkStatus();
  return blind.status();
}

absl::Status SanitizeSmallSizes(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at small sizes");
  const v1::Trial& trial = run.build.trial;
  if (trial.keep().skip_sanitizer() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL) {
    run.Note("compute-sanitizer was left out, as the campaign asks");
    return absl::OkStatus();
  }
  if (!run.device.has_sanitizer()) {
    run.Note("compute-sanitizer is not installed here");
    return absl::OkStatus();
  }
  // The smallest of the ladder, and two hidden ones that nobody can foresee: the tools are slow.
  std::vector<const BuiltSize*> small;
  for (size_t i = 0; i < run.build.small; ++i) small.push_back(&run.build.candidate.sizes[i]);
  while (small.size() > 3) small.erase(small.begin() + SecretSeed() % (small.size() - 1));
  absl::StatusOr<Sanitizing> sanitizing = run.device.Sanitize(small, SanitizerTools::kAll);
  if (!sanitizing.ok()) return sanitizing.status();
  if (sanitizing->failure) {
    run.Fail(*sanitizing->failure);
  } else {
    run.result().set_sanitized(true);
  }
  return absl::OkStatus();
}

absl::Status SanitizeLargeSizes(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at large sizes");
  if (!run.device.has_sanitizer()) return absl::OkStatus();  // the small sizes say so
  const BuiltSize* between = nullptr;
  for (const v1::Size& size : run.bundle.sizes()) {
    const BuiltSize* built = run.build.candidate.Find(size.name());
    if (built != nullptr && ContractBytes(built->plan) <= kSlowToolsBytes) between = built;
  }
  if (between == nullptr) run.Note("racecheck and initcheck ran at the small sizes only: the others are too large");
  std::vector<std::pair<const BuiltSize*, SanitizerTools>> runs;
  for (const SizeWeight& size : run.sizes()) {
    runs.emplace_back(run.build.candidate.Find(size.size), SanitizerTools::kMemcheck);
  }
  runs.emplace_back(between, SanitizerTools::kRaceAndInit);
  for (const auto& [size, tools] : runs) {
    if (size == nullptr) continue;
    absl::StatusOr<Sanitizing> sanitizing = run.device.Sanitize({size}, tools);
    if (absl::IsDeadlineExceeded(sanitizing.status())) {
      run.Note(absl::StrCat(sanitizing.status().message(), " at ", size->plan.size()));
      continue;
    }
    if (!sanitizing.ok()) return sanitizing.status();
    if (!sanitizing->failure) continue;
    sanitizing->failure->set_size(size->plan.size());
    run.Fail(*sanitizing->failure);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace pawl
