#include "worker/validate/validator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "kernels/plan.h"
#include "kernels/tolerance.h"
#include "worker/validate/few_elements.h"
#include "worker/validate/other_inputs.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr int kSmallerTries = 8;  // of a magnitude, each a 16th, where the reference is not finite
constexpr double kSmallerFactor = 16;
constexpr int64_t kOwnMemoryShare = 8;
constexpr int kMoreSeeds = 3;       // of problem.py at each small size: no other distribution is known of what it makes
constexpr int kNarrowerTries = 16;  // of a stated range, each half, to say what would do

v1::Failure LenientFailure(const v1::Plan& plan, const std::string& what) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_VALIDATE);
  failure.set_check(v1::CHECK_LENIENT);
  failure.set_size(plan.size());
  failure.set_message(what);
  return failure;
}

bool HasRange(const v1::PlanTensor& tensor) {
  // No structure that would have to stay.
  const bool free = tensor.fill() <= v1::FILL_UNIFORM || tensor.fill() == v1::FILL_UNIFORM_RANGE;
  return IsFilled(tensor.role()) && free && IsFloat(tensor.type()) && tensor.has_low();
}

class Validator {
 public:
  Validator(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built, const ValidationOptions& options)
      : device_(device), bundle_(bundle), built_(built), options_(options), start_(device, bundle, options.start) {}

  absl::StatusOr<Validation> Run() {
    if (options_.self_test) CheckTolerance();
    Assign();
    for (size_t i = 0; i < built_.sizes.size() && !validation_.failure; ++i) {
      const BuiltSize& at = built_.sizes[i];
      if (options_.report) options_.report(at.plan.size());
      if (absl::Status status = ValidateAt(at, drawn_[i], i < options_.small); !status.ok()) return status;
    }
    return std::move(validation_);
  }

 private:
  // A tolerance that no size of the ladder justifies.
  void CheckTolerance() {
    std::vector<const v1::Plan*> ladder;
    for (const v1::Size& size : bundle_.sizes()) {
      if (const BuiltSize* built = built_.Find(size.name())) ladder.push_back(&built->plan);
    }
    const std::optional<std::string> unjustified = UnjustifiedTolerance(ladder);
    if (unjustified) validation_.failure = LenientFailure(*ladder.back(), *unjustified);
  }

  // Which distributions are used at which size.
  void Assign() {
    drawn_.resize(built_.sizes.size());
    const size_t small = std::min(options_.small, built_.sizes.size());
    for (const auto& [distribution, magnitude] : options_.inputs) {
      if (options_.variety == InputVariety::kEverywhere) {
        // Timed calls of problem.py have its own inputs only: nothing else shows what large sizes do with others.
        const size_t end = distribution == v1::DISTRIBUTION_SCALED ? drawn_.size() : small;
        for (size_t i = 0; i < end; ++i) drawn_[i].push_back(distribution);
      } else if (small > 0) {
        drawn_[SecretSeed() % small].push_back(distribution);
      }
    }
  }

  absl::Status ValidateAt(const BuiltSize& at, const std::vector<v1::Distribution>& others, bool small) {
    absl::StatusOr<CheckedCall> own =
        CallWithOwn(at, {.repeats = options_.repeats, .self_test = options_.self_test, .own_rms = {}});
    if (!own.ok()) return own.status();
    if (!own->resources.empty()) validation_.resources[at.plan.size()] = own->resources;
    if (own->check.errors_size() > 0) {
      validation_.errors[at.plan.size()].assign(own->check.errors().begin(), own->check.errors().end());
    }
    validation_.failure = own->failure;
    modules_[at.module] = own->module_bytes;
    if (!validation_.failure) validation_.failure = TooMuchMemory(at, own->resources);
    if (!validation_.failure && !own->check.lenient().empty()) {
      // What is wrong for nearly all inputs may be right for a few: a column whose weight is about 0.
      absl::StatusOr<CheckedCall> again = CallAndCheck(device_, bundle_, at, FreshDraw(),
                                                       {.repeats = 1, .self_test = options_.self_test, .own_rms = {}});
      if (!again.ok()) return again.status();
      if (!again->failure && !again->check.lenient().empty()) {
        validation_.failure = LenientFailure(at.plan, LenientText(again->check));
      }
    }
    if (!validation_.failure && options_.self_test) validation_.failure = AbsoluteTooLarge(at.plan, own->Rms(at.plan));
    const CheckedCallOptions call = {.repeats = 1, .self_test = false, .own_rms = own->Rms(at.plan)};
    const int more_seeds = HasProblem(bundle_) && small ? kMoreSeeds : 0;
    for (int i = 0; i < more_seeds && !validation_.failure; ++i) {
      absl::StatusOr<CheckedCall> again = CallWithOwn(at, {.repeats = 1, .self_test = false, .own_rms = {}});
      if (!again.ok()) return again.status();
      validation_.failure = again->failure;
    }
    const BuiltSize other = others.empty() ? at : ForOtherInputs(at);
    for (const v1::Distribution distribution : others) {
      if (validation_.failure) return absl::OkStatus();
      if (absl::Status status = ValidateWith(other, distribution, call, small); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // With inputs of the bundle's own fill, and with others of it as long as it may be off by rounding alone.
  absl::StatusOr<CheckedCall> CallWithOwn(const BuiltSize& at, const CheckedCallOptions& options) {
    absl::StatusOr<CheckedCall> called = CallAndCheck(device_, bundle_, at, FreshDraw(), options);
    for (int tries = 1; tries < kRoundingTries && called.ok() && MayBeRounding(at.plan, *called); ++tries) {
      called = CallAndCheck(device_, bundle_, at, FreshDraw(), options);
    }
    return called;
  }

  // An absolute limit far above what an output's values justify at a size of the ladder. Hidden sizes may be so small
  // that most of an output is 0.
  std::optional<v1::Failure> AbsoluteTooLarge(const v1::Plan& plan, const std::vector<double>& rms) const {
    const auto& ladder = bundle_.sizes();
    if (std::none_of(ladder.begin(), ladder.end(), [&](const v1::Size& size) { return size.name() == plan.size(); })) {
      return std::nullopt;
    }
    size_t i = 0;
    for (const v1::PlanTensor& output : plan.tensors()) {
      if (!IsCompared(output.role())) continue;
      const double of_output = i < rms.size() ? rms[i] : 0;
      ++i;
      const v1::Tolerance& tolerance = ToleranceOf(plan, output);
      const double most = MostAbsolute(plan, output, of_output);
      if (output.elements() < kFewElements || tolerance.exact() || of_output == 0 || tolerance.absolute() <= most) {
        continue;
      }
      return LenientFailure(plan, absl::StrCat("the tolerance of ", output.name(), " accepts errors of ",
                                               tolerance.absolute(), " in values of about ", RoundedDown(of_output),
                                               "; absolute = ", RoundedDown(most), " would do"));
    }
    return std::nullopt;
  }

  // Beside the contract's tensors a variant may take an eighth of the GPU's memory, or twice what those take where that
  // is more: what it takes is missing for whatever is measured beside it.
  std::optional<v1::Failure> TooMuchMemory(const BuiltSize& at, const std::vector<v1::ResourceUse>& resources) const {
    const v1::GpuInfo& gpu = device_.gpu();
    int64_t modules = 0, scratch = 0, contract = 0, stack = 0;
    for (const auto& [module, bytes] : modules_) modules += bytes;
    for (const v1::PlanTensor& tensor : at.plan.tensors()) {
      const bool own = tensor.role() == v1::TENSOR_ROLE_SCRATCH;
      (own ? scratch : contract) += tensor.elements() * ElementBytes(tensor.type());
    }
    // The driver keeps stacks for as many threads as the GPU can hold.
    for (const v1::ResourceUse& use : resources) stack = std::max<int64_t>(stack, use.local_bytes());
    stack *= int64_t{gpu.max_threads_per_sm()} * gpu.sm_count();
    const int64_t limit = std::max(gpu.memory_bytes() / kOwnMemoryShare, 2 * contract);
    if (modules + scratch + stack <= limit) return std::nullopt;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_VALIDATE);
    failure.set_check(v1::CHECK_OUT_OF_MEMORY);
    failure.set_size(at.plan.size());
    failure.set_message(absl::StrCat("beside the contract's tensors it takes ", (modules + scratch + stack) >> 20,
                                     " MiB of the GPU's memory (code and globals ", modules >> 20, ", scratch ",
                                     scratch >> 20, ", stacks ", stack >> 20, "); at most ", limit >> 20,
                                     " MiB are allowed"));
    return failure;
  }

  static std::string LenientText(const v1::CheckReply& check) {
    const std::string what = absl::StrJoin(check.lenient(), "; ");
    if (check.verdicts_size() > 0) return absl::StrCat("check() of problem.py accepts what is wrong: ", what);
    return absl::StrCat("the tolerance accepts what is wrong: ", what, ". Tighten it");
  }

  // Magnitudes were found at small sizes. At another one they are tried, and where the start variant, which this may
  // be, is right with none, nothing follows.
  absl::Status ValidateWith(const BuiltSize& at, v1::Distribution distribution, const CheckedCallOptions& options,
                            bool small) {
    const double largest = options_.inputs.at(distribution);
    double magnitude = largest;
    bool again = HasFewValues(distribution), doubted = false;
    int roundings = 0;
    for (int tries = 0;;) {
      const v1::InputDraw draw = FreshDraw(distribution, magnitude);
      absl::StatusOr<CheckedCall> called = CallAndCheck(device_, bundle_, at, draw, options);
      // problem.py makes and checks such inputs for nobody but us.
      const bool of_problem = absl::IsInvalidArgument(called.status()) || absl::IsResourceExhausted(called.status());
      if (distribution == v1::DISTRIBUTION_SCALED && of_problem) return absl::OkStatus();
      if (!called.ok()) return called.status();
      if (!called->failure) {
        // What overflows where the reference does proves nothing: where that can be avoided, it is.
        if (small || called->reference_finite || largest == 0 || ++tries > kSmallerTries) return absl::OkStatus();
        magnitude /= kSmallerFactor;
        continue;
      }
      const bool values_are_off = called->compared();
      // As with values, the start variant may break where it never had such inputs.
      const v1::Check check = called->failure->check();
      const bool broke = !small && (check == v1::CHECK_FAULT || check == v1::CHECK_TIMEOUT);
      if (values_are_off && !called->reference_finite) {
        const absl::StatusOr<bool> start_is_right = start_.IsRight(at.plan, draw, options);
        if (!start_is_right.ok()) return start_is_right.status();
        if (!*start_is_right) {
          if (largest == 0 || ++tries > kSmallerTries) return absl::OkStatus();  // nothing to compare with
          magnitude /= kSmallerFactor;
          continue;
        }
        // Where the start variant is infinite where it should be, so must a candidate be. Of values next to the largest
        // that the type holds one may round to infinity and another not: such a draw must fail twice.
        if (!doubted) {
          doubted = true;
          continue;
        }
      }
      if (values_are_off && again) {
        again = false;
        continue;
      }
      if (MayBeRounding(at.plan, *called) && ++roundings < kRoundingTries) continue;
      // Nobody states how large these inputs may be: where the start variant is wrong too, they are too large.
      const bool may_be_too_large = (values_are_off && called->reference_finite) || broke;
      if (may_be_too_large && largest > 0 && (!small || tries < kSmallerTries)) {
        const absl::StatusOr<bool> start_is_right = start_.IsRight(at.plan, draw, options);
        if (!start_is_right.ok()) return start_is_right.status();
        if (!*start_is_right) {
          if (++tries > kSmallerTries) return absl::OkStatus();
          magnitude /= kSmallerFactor;
          continue;
        }
      }
      if (values_are_off) {
        const absl::StatusOr<bool> strained = start_.IsStrained(at.plan, draw, options, *called);
        if (!strained.ok()) return strained.status();
        if (*strained) return absl::OkStatus();
      }
      validation_.failure = called->failure;
      validation_.failed_with = distribution;
      std::string with = absl::StrCat("with ", DistributionText(distribution));
      if (magnitude > 0) absl::StrAppend(&with, ", up to ", magnitude);
      if (options_.self_test && values_are_off) {
        absl::StatusOr<std::string> advice = RangeAdvice(at, distribution, options);
        if (!advice.ok()) return advice.status();
        absl::StrAppend(validation_.failure->mutable_message(), *advice);
      }
      validation_.failure->set_message(absl::StrCat(with, ": ", validation_.failure->message()));
      return absl::OkStatus();
    }
  }

  // What ranges the start variant would be right in, where it is wrong in those that the bundle states.
  absl::StatusOr<std::string> RangeAdvice(const BuiltSize& at, v1::Distribution distribution,
                                          const CheckedCallOptions& options) {
    const auto& tensors = at.plan.tensors();
    if (distribution == v1::DISTRIBUTION_DENORMAL) {  // every range that holds 0 has them
      return std::string(". Its start variant is wrong for numbers so small, which every range around 0 has");
    }
    if (std::none_of(tensors.begin(), tensors.end(), HasRange)) return std::string();
    BuiltSize narrower = at;
    for (int tries = 0; tries < kNarrowerTries; ++tries) {
      std::vector<std::string> ranges;
      for (v1::PlanTensor& tensor : *narrower.plan.mutable_tensors()) {
        if (!HasRange(tensor)) continue;
        tensor.set_low(tensor.low() / 2);
        tensor.set_high(tensor.high() / 2);
        ranges.push_back(absl::StrCat(tensor.name(), " range = [", tensor.low(), ", ", tensor.high(), "]"));
      }
      absl::StatusOr<CheckedCall> called =
          CallAndCheck(device_, bundle_, narrower, FreshDraw(distribution, options_.inputs.at(distribution)), options);
      if (!called.ok()) return called.status();
      if (called->failure || !called->reference_finite) continue;
      return absl::StrCat(". The bundle states a range in which its start variant is wrong; ",
                          absl::StrJoin(ranges, ", "), " would do");
    }
    return std::string(
        ". The bundle states a range in which its start variant is wrong, and so it is in narrower ones");
  }

  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const BuiltVariant& built_;
  const ValidationOptions& options_;
  const StartVariantCheck start_;
  std::vector<std::vector<v1::Distribution>> drawn_;  // by size
  std::map<std::string, int64_t> modules_;            // bytes of those that were loaded
  Validation validation_;
};

}  // namespace

absl::StatusOr<Validation> Validate(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built,
                                    const ValidationOptions& options) {
  const SteadyTime start = SteadyNow();
  absl::StatusOr<Validation> validation = Validator(device, bundle, built, options).Run();
  if (validation.ok()) validation->seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return validation;
}

}  // namespace pawl
