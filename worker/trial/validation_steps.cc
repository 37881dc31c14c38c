// The steps of a trial that say whether a variant is right.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/utf8.h"
#include "base/sync/steady_time.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "worker/trial/trial_steps.h"
#include "worker/validate/blind_reference.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

// Tensors that racecheck and initcheck run over at once, at most: the tools take memory for each byte of them.
constexpr int64_t kSlowToolsBytes = int64_t{256} << 20;
constexpr char kNoSanitizer[] = "compute-sanitizer is not installed here";
constexpr double kSurprise = 10;  // a larger speedup is not believed before it was validated again

// Notes why not.
bool Sanitizes(TrialRun& run) {
  const v1::Trial& trial = run.build.trial;
  const bool left_out = trial.keep().skip_sanitizer() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL;
  if (left_out) run.Note("compute-sanitizer was left out, as the campaign asks");
  if (!left_out && !run.device.has_sanitizer()) run.Note(kNoSanitizer);
  return !left_out && run.device.has_sanitizer();
}

// Of all its sizes.
int64_t InputBytes(const std::vector<BuiltSize>& sizes) {
  int64_t bytes = 0;
  for (const BuiltSize& size : sizes) bytes += ContractBytes(size.plan);
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
  SteadyTime since = SteadyNow();
  const auto ended = [&] {
    if (!at.empty()) run.validate_seconds[at] = absl::ToDoubleSeconds(SteadyNow() - since);
  };
  options.report = [&](const std::string& size) {
    ended();
    at = size;
    since = SteadyNow();
    run.Report(v1::STAGE_VALIDATE, absl::StrCat("validate at ", size));
  };
  const absl::Status status = ValidateSizes(run, run.build.candidate, options);
  ended();
  return status;
}

// What was built of the candidate at further sizes. Null: it fails there, and so does the run.
absl::StatusOr<const BuiltVariant*> TakeFurther(TrialRun& run, FurtherBuild& further) {
  const StageWatch watch(run, v1::STAGE_BUILD);
  absl::StatusOr<BuiltVariant> built = further.TakeHiddenAndAgain();
  if (!built.ok()) return built.status();
  const std::optional<v1::Failure> failure = built->failure ? built->failure : HeapThatRemembers(run.bundle, *built);
  if (failure) run.Fail(*failure);
  for (BuiltSize& at : built->sizes) {
    // What is timed and handed out is what is validated, whatever the compiler makes of the same source again.
    const BuiltSize* timed = run.build.candidate.Find(at.plan.size());
    if (timed != nullptr && !failure) at = *timed;
  }
  run.more.push_back(*std::move(built));
  return failure ? nullptr : &run.more.back();
}

BuiltVariant Part(const BuiltVariant& built, size_t begin, size_t end) {
  BuiltVariant part = built;
  part.sizes.assign(built.sizes.begin() + begin, built.sizes.begin() + end);
  return part;
}

// Whether the start variant is right at a size where the candidate was not, with inputs of the same distribution.
absl::StatusOr<bool> StartIsRightAt(TrialRun& run, const v1::Size& size, v1::Distribution distribution) {
  absl::StatusOr<BuiltVariant> start =
      BuildVariant(run.device.builder(), *run.build.before_edits, StartVariant(*run.build.before_edits), {size},
                   run.device.gpu(), run.device.stopped());
  if (!start.ok()) return start.status();
  if (start->failure) return false;
  ValidationOptions options;
  if (const auto found = run.inputs.find(distribution); found != run.inputs.end()) {
    options.inputs.insert(*found);
    options.variety = InputVariety::kEverywhere;
    options.small = HasProblem(run.bundle) ? 0 : 1;
  }
  const absl::StatusOr<Validation> validation = Validate(run.device, run.bundle, *start, options);
  if (!validation.ok()) return validation.status();
  return !validation->failure;
}

// At sizes that no ladder has. Where the start variant is wrong there too, the bundle does not ask for them.
absl::Status ValidateOffLadder(TrialRun& run, const std::vector<v1::Size>& sizes, absl::StatusOr<BuiltVariant> built) {
  if (!built.ok()) return built.status();
  if (built->failure && sizes.size() > 1) {  // perhaps at one of them only
    for (const v1::Size& size : sizes) {
      absl::StatusOr<BuiltVariant> one =
          BuildVariant(run.device.builder(), run.bundle, run.build.candidate.variant, {size}, run.device.gpu(),
                       run.device.stopped(), run.build.before_edits.get());
      const absl::Status status = ValidateOffLadder(run, {size}, std::move(one));
      if (!status.ok() || run.failed()) return status;
    }
    return absl::OkStatus();
  }
  for (size_t begin = 0; begin < sizes.size();) {
    size_t at = begin, validated = 0;
    Validation validation;
    validation.failure = built->failure;
    if (!built->failure) {
      const StageWatch watch(run, v1::STAGE_VALIDATE);
      // These may be large, and problem.py slow: one seed and one that is scaled must do.
      const bool problem = HasProblem(run.bundle);
      ValidationOptions options =
          OptionsFor(run, ValidationOptions().repeats, problem ? InputVariety::kEverywhere : InputVariety::kSpread);
      options.small = problem ? 0 : sizes.size() - begin;
      options.report = [&](const std::string&) { at = begin + validated++; };
      absl::StatusOr<Validation> ended = Validate(run.device, run.bundle, Part(*built, begin, sizes.size()), options);
      // A reference need not know this size.
      if (!ended.ok() && !run.ReferenceFailure(ended.status(), v1::STAGE_VALIDATE)) return ended.status();
      if (ended.ok() && !ended->failure) return absl::OkStatus();
      if (ended.ok()) validation = *std::move(ended);
    }
    begin = at + 1;
    if (!validation.failure) continue;
    const absl::StatusOr<bool> start_is_right = StartIsRightAt(run, sizes[at], validation.failed_with);
    if (!start_is_right.ok()) return start_is_right.status();
    if (*start_is_right) {
      run.Fail(*validation.failure);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace

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
  absl::StatusOr<std::optional<FoundMagnitudes>> found = absl::NotFoundError("it was not built");
  if (is_start || run.build.start) {
    found = FindMagnitudes(run.device, run.bundle, is_start ? run.build.candidate : *run.build.start, run.build.small);
  }
  const bool of_reference = absl::IsInvalidArgument(found.status()) || absl::IsResourceExhausted(found.status());
  // Validating says what is wrong with a start or its reference. A candidate is not validated with less for it.
  if (is_start && (of_reference || (found.ok() && !*found))) return absl::OkStatus();
  if (!found.ok() && !of_reference && !absl::IsNotFound(found.status())) return found.status();
  if (!found.ok() || !*found) {
    return absl::InternalError(
        absl::StrCat("with which inputs the start variant is right could not be found: ",
                     found.ok() ? "here it is wrong with its own" : std::string(found.status().message())));
  }
  run.inputs = (*found)->magnitudes;
  if (is_start) run.Note((*found)->note);
  run.device.input_limits().Put(run.build.hash(), (*found)->magnitudes);
  return absl::OkStatus();
}

absl::Status OpenSpare(TrialRun& run) {
  (void)run.device.runner().OpenSpare();  // where it can't begin, the comparison that needs one says why
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
  BuildFurther(run);
  const std::unique_ptr<FurtherBuild> further = std::move(run.further);  // another time has other sizes
  const std::vector<v1::Size>& hidden = further->hidden();
  const absl::StatusOr<const BuiltVariant*> built = TakeFurther(run, *further);
  if (!built.ok() || *built == nullptr) return built.status();
  if (!hidden.empty()) {
    ValidationOptions options = OptionsFor(run, 2, InputVariety::kEverywhere);
    options.small = hidden.size();
    const absl::Status status = ValidateSizes(run, Part(**built, 0, hidden.size()), options);
    if (!status.ok() || run.failed()) return status;
  }
  if (const std::vector<v1::Size>& beside = further->beside(); !beside.empty()) {
    const absl::Status status = ValidateOffLadder(run, beside, further->TakeBeside());
    if (!status.ok() || run.failed()) return status;
  }
  ValidationOptions options = OptionsFor(run, 20, InputVariety::kEverywhere);
  options.small = further->again().small;
  return ValidateSizes(run, Part(**built, hidden.size(), (*built)->sizes.size()), options);
}

void BuildFurther(TrialRun& run) {
  if (run.further != nullptr) return;
  run.further = std::make_unique<FurtherBuild>(run.device, run.bundle, run.build.before_edits.get(),
                                               run.build.candidate, run.sizes());
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

absl::Status BeginSanitizing(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  if (!Sanitizes(run)) return absl::OkStatus();
  std::vector<const BuiltSize*> small;
  const std::vector<int64_t> bytes = BytesOf(run.build.candidate.sizes, run.build.small);
  for (const size_t place : PlacesToSanitize(bytes, HiddenToSanitize::kAny)) {
    small.push_back(&run.build.candidate.sizes[place]);
  }
  absl::StatusOr<std::unique_ptr<SanitizerRun>> sanitizer = run.device.StartSanitizing(small, SanitizerTools::kAll);
  if (!sanitizer.ok()) return sanitizer.status();
  run.sanitizer = *std::move(sanitizer);
  run.sanitizer_begin = run.observer.seconds();
  return absl::OkStatus();
}

absl::Status EndSanitizing(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at small sizes");
  if (run.sanitizer == nullptr) return absl::OkStatus();
  absl::StatusOr<Sanitizing> sanitizing = run.sanitizer->Wait();
  run.sanitizer.reset();
  if (!sanitizing.ok()) return sanitizing.status();
  v1::BesideTime& beside = *run.result().add_beside();
  beside.set_kind(v1::BesideTime::SANITIZER);
  beside.set_begin(run.sanitizer_begin);
  beside.set_seconds(sanitizing->seconds);
  if (sanitizing->failure) {
    run.Fail(*sanitizing->failure);
  } else {
    run.result().set_sanitized(true);
  }
  return absl::OkStatus();
}

absl::Status SanitizeLater(TrialRun& run) {
  if (Sanitizes(run)) run.result().set_sanitize_later(true);
  return absl::OkStatus();
}

absl::Status SanitizeKept(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer over kept variants");
  const v1::Trial& trial = run.build.trial;
  const std::vector<std::vector<BuiltSize>>& variants = run.build.unsanitized;
  const auto sanitize = [&](size_t begin, size_t end) -> absl::StatusOr<Sanitizing> {
    std::vector<const BuiltSize*> sizes;
    for (size_t i = begin; i < end; ++i) {
      for (const BuiltSize& size : variants[i]) sizes.push_back(&size);
    }
    absl::StatusOr<std::unique_ptr<SanitizerRun>> started = run.device.StartSanitizing(sizes, SanitizerTools::kAll);
    return started.ok() ? (*started)->Wait() : started.status();
  };
  std::optional<size_t> good;  // one over which it ran
  absl::Status trouble;
  bool of_start = false;
  for (size_t begin = 0, end = 0; begin < variants.size(); begin = end) {
    int64_t bytes = InputBytes(variants[begin]);
    for (end = begin + 1; end < variants.size(); ++end) {
      bytes += InputBytes(variants[end]);
      if (bytes > kSlowToolsBytes) break;
    }
    const absl::StatusOr<Sanitizing> together = sanitize(begin, end);
    if (absl::IsCancelled(together.status())) return together.status();
    // Which of them it was, or whether they take too long or too much memory together only, each shows by itself.
    const bool passed = together.ok() && !together->failure;
    if (!passed) run.device.runner().EndSpare();
    const bool one = end == begin + 1;
    for (size_t i = begin; i < end; ++i) {
      v1::SanitizedVariant& found = *run.result().add_sanitized_variants();
      found.set_iteration(trial.unsanitized(static_cast<int>(i)).iteration());
      if (passed) continue;
      run.Report(v1::STAGE_VALIDATE, absl::StrCat("compute-sanitizer over iteration ", found.iteration(), " alone"));
      const bool known = one && together.ok() && together->failure->check() != v1::CHECK_TIMEOUT;
      const absl::StatusOr<Sanitizing> alone = known ? together : sanitize(i, i + 1);
      if (absl::IsCancelled(alone.status())) return alone.status();
      if (!alone.ok()) {
        trouble = alone.status();
        of_start = of_start || found.iteration() == 0;
        found.mutable_failure()->set_stage(v1::STAGE_VALIDATE);
        found.mutable_failure()->set_check(v1::CHECK_TIMEOUT);
        found.mutable_failure()->set_message(
            absl::StrCat("compute-sanitizer could not run over it: ", std::string(trouble.message())));
      } else {
        good = i;
        if (alone->failure) *found.mutable_failure() = *alone->failure;
      }
      if (found.has_failure()) found.mutable_failure()->set_message(ValidUtf8(found.failure().message()));
    }
    if (passed) good = begin;
  }
  if (trouble.ok()) return absl::OkStatus();
  if (of_start) return trouble;  // all others would be lost with it: another worker tries it first
  // Where it can't run over what it ran over before either, it is this machine's fault.
  return good && sanitize(*good, *good + 1).ok() ? absl::OkStatus() : trouble;
}

absl::Status SanitizeLargeSizes(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.device.runner().EndSpare();  // the tools need memory
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at large sizes");
  if (!run.device.has_sanitizer()) return absl::OkStatus();  // the small sizes say so
  // All tools have seen the smallest size of the ladder, and some of the hidden ones that take less than others.
  std::vector<const BuiltSize*> hidden, between;
  for (const size_t place : LargerHidden(BytesOf(run.build.candidate.sizes, run.build.small))) {
    hidden.push_back(&run.build.candidate.sizes[place]);
  }
  size_t unseen = hidden.size();  // by racecheck and initcheck
  between = hidden;
  for (const v1::Size& size : run.bundle.sizes()) {
    const BuiltSize* built = run.build.candidate.Find(size.name());
    if (&size == &run.bundle.sizes(0)) continue;
    ++unseen;
    if (built != nullptr) between.push_back(built);
  }
  std::erase_if(between, [](const BuiltSize* built) { return ContractBytes(built->plan) > kSlowToolsBytes; });
  std::stable_sort(between.begin(), between.end(), [](const BuiltSize* a, const BuiltSize* b) {
    return ContractBytes(a->plan) < ContractBytes(b->plan);
  });
  const auto start = [&](const std::vector<const BuiltSize*>& sizes,
                         SanitizerTools tools) -> absl::StatusOr<std::unique_ptr<SanitizerRun>> {
    if (sizes.empty()) return nullptr;
    return run.device.StartSanitizing(sizes, tools);
  };
  const absl::StatusOr<std::unique_ptr<SanitizerRun>> slow = start(between, SanitizerTools::kRaceAndInit);
  if (!slow.ok()) return slow.status();
  const absl::StatusOr<std::unique_ptr<SanitizerRun>> at_hidden = start(hidden, SanitizerTools::kMemcheck);
  if (!at_hidden.ok()) return at_hidden.status();
  // False: what it found, or its own trouble, is the end of this step.
  const auto passes = [&](SanitizerRun& memcheck, const std::string& size) -> absl::StatusOr<bool> {
    const absl::StatusOr<Sanitizing> end = memcheck.Wait();
    if (absl::IsDeadlineExceeded(end.status())) {
      run.Note(absl::StrCat(end.status().message(), " at ", size));
      return true;
    }
    if (!end.ok()) return end.status();
    if (!end->failure) return true;
    v1::Failure failure = *end->failure;
    failure.set_size(size);
    run.Fail(failure);
    return false;
  };
  for (const SizeWeight& size : run.sizes()) {
    const absl::StatusOr<std::unique_ptr<SanitizerRun>> memcheck =
        start({run.build.candidate.Find(size.size)}, SanitizerTools::kMemcheck);
    if (!memcheck.ok()) return memcheck.status();
    const absl::StatusOr<bool> passed = passes(**memcheck, size.size);
    if (!passed.ok() || !*passed) return passed.status();
  }
  if (*at_hidden != nullptr) {
    const absl::StatusOr<bool> passed =
        passes(**at_hidden, hidden.size() == 1 ? hidden[0]->plan.size() : "hidden sizes");
    if (!passed.ok() || !*passed) return passed.status();
  }
  absl::StatusOr<Sanitizing> slow_tools = Sanitizing();
  if (*slow != nullptr) slow_tools = (*slow)->Wait();
  if (!slow_tools.ok()) return slow_tools.status();
  if (slow_tools->failure) {
    if (between.size() == 1) slow_tools->failure->set_size(between[0]->plan.size());
    run.Fail(*slow_tools->failure);
    return absl::OkStatus();
  }
  if (const size_t called = slow_tools->called; called < unseen) {
    const std::string& largest = called == 0 ? run.bundle.sizes(0).name() : between[called - 1]->plan.size();
    run.Note(absl::StrCat("racecheck and initcheck ran up to ", largest, ": they are too slow for larger sizes"));
  }
  return absl::OkStatus();
}

}  // namespace pawl
