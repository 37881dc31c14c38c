#include "worker/validate/other_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/tolerance.h"
#include "worker/validate/few_elements.h"
#include "worker/validate/input_draws.h"

namespace pawl {
namespace {

// Where float arithmetic loses much, as in differences of large numbers, the start variant comes close to the limits
// too: where it takes this share of them, a candidate may be off by so many times as much as the start.
constexpr double kStrained = 0.5;
constexpr double kTimesStart = 4;

// Empty where the reply lacks it.
const v1::ReferenceOutput& ReferenceAt(const v1::CheckReply& check, size_t i) {
  const bool there = i < static_cast<size_t>(check.references_size());
  return there ? check.references(static_cast<int>(i)) : v1::ReferenceOutput::default_instance();
}

// One draw's part of a check of many.
CheckedCall CallOf(const v1::CheckReply& check, size_t draw, size_t outputs, const std::vector<double>& own_rms) {
  CheckedCall call;
  for (size_t i = draw * outputs; i < (draw + 1) * outputs; ++i) {
    *call.check.add_errors() = check.errors(static_cast<int>(i));
    const v1::ReferenceOutput& reference = ReferenceAt(check, i);
    *call.check.add_references() = reference;
    call.reference_finite = call.reference_finite && IsFinite(reference);
    const double own = own_rms[i % outputs];
    call.scales.push_back(own > 0 ? std::max(1.0, reference.rms() / own) : 1);
  }
  return call;
}

}  // namespace

bool IsOfOwnFill(const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED; }

BuiltSize ForOtherInputs(const BuiltSize& at) {
  BuiltSize other = at;
  for (v1::PlanTensor& tensor : *other.plan.mutable_tensors()) {
    if (!IsCompared(tensor.role()) || !IsFloat(tensor.type())) continue;
    v1::Tolerance tolerance = ToleranceOf(other.plan, tensor);
    tolerance.set_relative(std::max(tolerance.relative(), RoundingOfSums(other.plan, tensor)));
    *tensor.mutable_tolerance() = tolerance;
  }
  return other;
}

bool HasFewValues(v1::Distribution distribution) {
  return distribution == v1::DISTRIBUTION_EQUAL || distribution == v1::DISTRIBUTION_EXTREMES;
}

absl::StatusOr<std::optional<CheckedCall>> StartVariantCheck::Call(const v1::Plan& at, const v1::InputDraw& draw,
                                                                   const CheckedCallOptions& options,
                                                                   v1::Plan* plan) const {
  if (!start_) return std::nullopt;
  const absl::StatusOr<const BuiltSize*> built = start_(at);
  if (!built.ok()) return built.status();
  if (*built == nullptr) return std::nullopt;
  const BuiltSize start = ForOtherInputs(**built);
  *plan = start.plan;
  absl::StatusOr<CheckedCall> called = CallAndCheck(device_, bundle_, start, draw, options);
  if (!called.ok()) return called.status();
  return *std::move(called);
}

absl::StatusOr<bool> StartVariantCheck::IsRight(const v1::Plan& at, const v1::InputDraw& draw,
                                                const CheckedCallOptions& options) const {
  v1::Plan plan;
  const absl::StatusOr<std::optional<CheckedCall>> start = Call(at, draw, options, &plan);
  if (!start.ok()) return start.status();
  return start->has_value() && !(*start)->failure;
}

absl::StatusOr<bool> StartVariantCheck::IsStrained(const v1::Plan& at, const v1::InputDraw& draw,
                                                   const CheckedCallOptions& options,
                                                   const CheckedCall& candidate) const {
  v1::Plan plan;
  const absl::StatusOr<std::optional<CheckedCall>> called = Call(at, draw, options, &plan);
  if (!called.ok()) return called.status();
  if (!called->has_value()) return false;
  const CheckedCall& start = **called;
  if (start.failure || start.check.errors_size() != candidate.check.errors_size()) return false;
  for (int i = 0; i < candidate.check.errors_size(); ++i) {
    const double strain = Strain(at, candidate, i), of_start = Strain(plan, start, i);
    if (strain > 1 && (of_start < kStrained || strain > kTimesStart * of_start)) return false;
  }
  return true;
}

absl::StatusOr<std::optional<v1::Failure>> JudgeOtherInputs(GpuDevice& device, const v1::Bundle& bundle,
                                                            const BuiltSize& candidate,
                                                            const std::vector<v1::InputDraw>& draws,
                                                            const v1::CheckReply& check, const StartAtSize& start) {
  const size_t outputs = draws.empty() ? 0 : static_cast<size_t>(check.errors_size()) / draws.size();
  const auto own = std::find_if(draws.begin(), draws.end(), IsOfOwnFill);
  if (outputs == 0 || own == draws.end()) return std::nullopt;
  CheckedCallOptions options;
  options.own_rms = TypicalRms(candidate.plan, draws, check);
  options.own_rms.resize(outputs);
  const BuiltSize other = ForOtherInputs(candidate);
  const StartVariantCheck of_start(device, bundle, start);
  bool doubted = false;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (IsOfOwnFill(draws[i])) continue;
    const CheckedCall call = CallOf(check, i, outputs, options.own_rms);
    std::optional<v1::Failure> failure = JudgeErrors(other.plan, call.check.errors(), call.scales);
    if (!failure || !call.reference_finite) continue;
    v1::InputDraw draw = draws[i];
    draw.clear_pieces();  // all of the start's outputs are compared
    const absl::StatusOr<bool> start_is_right = of_start.IsRight(candidate.plan, draw, options);
    if (!start_is_right.ok()) return start_is_right.status();
    if (!*start_is_right) continue;
    const absl::StatusOr<bool> strained = of_start.IsStrained(other.plan, draw, options, call);
    if (!strained.ok()) return strained.status();
    if (*strained) continue;
    // More than rounding does.
    double strain = 0;
    for (int output = 0; output < call.check.errors_size(); ++output) {
      strain = std::max(strain, Strain(other.plan, call, output));
    }
    if (HasFewValues(draws[i].distribution()) && strain <= kTimesStart && !doubted) {
      doubted = true;
      continue;
    }
    failure->set_message(absl::StrCat("with ", DistributionText(draws[i].distribution()), ": ", failure->message()));
    return failure;
  }
  return std::nullopt;
}

}  // namespace pawl
