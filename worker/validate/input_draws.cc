#include "worker/validate/input_draws.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/validate/checked_call.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr v1::Distribution kForFloats[] = {
    v1::DISTRIBUTION_WIDE_NORMAL, v1::DISTRIBUTION_HEAVY_TAILS, v1::DISTRIBUTION_LARGE,
    v1::DISTRIBUTION_EQUAL,       v1::DISTRIBUTION_SORTED,      v1::DISTRIBUTION_ZEROS,
    v1::DISTRIBUTION_DENORMAL,    v1::DISTRIBUTION_EXTREMES,    v1::DISTRIBUTION_STRIPED};
constexpr v1::Distribution kForIntegers[] = {v1::DISTRIBUTION_HEAVY_TAILS, v1::DISTRIBUTION_LARGE,
                                             v1::DISTRIBUTION_EQUAL,       v1::DISTRIBUTION_SORTED,
                                             v1::DISTRIBUTION_ZEROS,       v1::DISTRIBUTION_EXTREMES};

constexpr size_t kMaxBundles = 256;
constexpr int kMargin = 3;             // powers of two below the largest that is right
constexpr int kLeastExponent = -2;     // below the bundle's own fill: such a distribution is left out
constexpr int kLargestExponent = 500;  // of f64: its square is finite too

// Values of such a fill may have any distribution within their range.
bool IsFree(v1::Fill fill) { return fill <= v1::FILL_INTEGERS || fill == v1::FILL_UNIFORM_RANGE; }

// Floats that problem.py makes, and for which no range is stated: of their distribution nothing is known but what it
// makes. Times a power of two their order, signs and ratios stay.
bool MayBeScaled(const v1::Tensor& tensor) {
  return IsFilled(tensor.role()) && IsFloat(tensor.type()) && tensor.fill() == v1::FILL_PROBLEM;
}

bool IsOpen(const v1::Tensor& tensor) {
  if (MayBeScaled(tensor)) return true;
  return IsFilled(tensor.role()) && IsFloat(tensor.type()) && tensor.fill() <= v1::FILL_UNIFORM && tensor.low().empty();
}

// The largest power of two that every float input without a range holds.
int LargestExponent(const v1::Bundle& bundle) {
  int exponent = kLargestExponent;
  for (const v1::Tensor& tensor : bundle.tensors()) {
    if (IsOpen(tensor)) exponent = std::min(exponent, std::ilogb(LargestOf(tensor.type())));
  }
  return exponent;
}

// problem.py failed, hung or took too much memory.
bool IsOfProblem(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

// Tries magnitudes of one distribution at one size.
class Trying {
 public:
  Trying(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& at, v1::Distribution distribution,
         std::vector<double> own_rms)
      : device_(device), bundle_(bundle), at_(at), distribution_(distribution) {
    options_.own_rms = std::move(own_rms);
  }

  absl::StatusOr<bool> IsRight(int exponent) {
    const v1::InputDraw draw = FreshDraw(distribution_, std::ldexp(1.0, exponent));
    absl::StatusOr<CheckedCall> called = CallAndCheck(device_, bundle_, at_, draw, options_);
    if (!called.ok()) return called.status();
    if (called->failure && called->failure->check() == v1::CHECK_OUT_OF_MEMORY) {  // of this machine, not of the inputs
      return absl::UnavailableError(called->failure->message());
    }
    if (called->failure && called->reference_finite) start_was_wrong_ = true;
    return !called->failure && called->reference_finite;
  }

  // The largest exponent that is right, up to this one; nothing: none is.
  absl::StatusOr<std::optional<int>> Largest(int exponent) {
    absl::StatusOr<bool> right = IsRight(exponent);
    if (!right.ok()) return right.status();
    if (*right) return exponent;
    int low = kLeastExponent - 1, high = exponent;  // high is wrong, low is taken as right
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      right = IsRight(middle);
      if (!right.ok()) return right.status();
      (*right ? low : high) = middle;
    }
    if (low < kLeastExponent) return std::nullopt;
    return std::max(kLeastExponent, low - kMargin);
  }

  // Where the reference was finite.
  bool start_was_wrong() const { return start_was_wrong_; }

 private:
  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const BuiltSize& at_;
  const v1::Distribution distribution_;
  CheckedCallOptions options_;
  bool start_was_wrong_ = false;
};

}  // namespace

InputMagnitudes DistributionsFor(const v1::Bundle& bundle) {
  InputMagnitudes distributions;
  for (const v1::Tensor& tensor : bundle.tensors()) {
    if (!IsFilled(tensor.role())) continue;
    if (tensor.fill() == v1::FILL_SORTED) distributions[v1::DISTRIBUTION_EQUAL] = 0;
    if (MayBeScaled(tensor)) distributions[v1::DISTRIBUTION_SCALED] = 0;
    if (!IsFree(tensor.fill())) continue;
    if (!IsFloat(tensor.type()) || tensor.fill() == v1::FILL_INTEGERS) {
      for (const v1::Distribution distribution : kForIntegers) distributions[distribution] = 0;
    } else {
      for (const v1::Distribution distribution : kForFloats) distributions[distribution] = 0;
    }
  }
  return distributions;
}

bool LeavesRangeOpen(const v1::Bundle& bundle) {
  return std::any_of(bundle.tensors().begin(), bundle.tensors().end(), IsOpen);
}

std::optional<InputMagnitudes> InputLimits::Find(const std::string& bundle_hash) {
  absl::MutexLock lock(&mutex_);
  const auto found = magnitudes_.find(bundle_hash);
  return found == magnitudes_.end() ? std::nullopt : std::optional(found->second);
}

void InputLimits::Put(const std::string& bundle_hash, InputMagnitudes magnitudes) {
  absl::MutexLock lock(&mutex_);
  if (magnitudes_.size() >= kMaxBundles) magnitudes_.clear();
  magnitudes_[bundle_hash] = std::move(magnitudes);
}

absl::StatusOr<std::optional<FoundMagnitudes>> FindMagnitudes(GpuDevice& device, const v1::Bundle& bundle,
                                                              const BuiltVariant& start, size_t small) {
  FoundMagnitudes found;
  std::map<v1::Distribution, int> exponents;
  std::set<v1::Distribution> limited;  // by the start variant
  const bool fills_are_open =
      std::any_of(bundle.tensors().begin(), bundle.tensors().end(),
                  [](const v1::Tensor& tensor) { return IsOpen(tensor) && !MayBeScaled(tensor); });
  for (const auto& [distribution, unused] : DistributionsFor(bundle)) {
    if (distribution == v1::DISTRIBUTION_SCALED) {
      // A check() of the problem's own may accept anything of what is not finite.
      absl::StatusOr<bool> has_check = device.problem().HasCheck(bundle);
      if (!has_check.ok()) return has_check.status();
      if (*has_check) continue;
    } else if (!fills_are_open) {
      found.magnitudes[distribution] = 0;  // every range is stated
      continue;
    }
    exponents[distribution] = LargestExponent(bundle);
  }
  for (size_t i = 0; i < std::min(small, start.sizes.size()); ++i) {
    const BuiltSize& at = start.sizes[i];
    absl::StatusOr<CheckedCall> own = CallAndCheck(device, bundle, at, FreshDraw(), {});
    if (!own.ok()) return own.status();
    if (own->failure) return std::nullopt;
    for (auto it = exponents.begin(); it != exponents.end();) {
      Trying trying(device, bundle, at, it->first, own->Rms(at.plan));
      absl::StatusOr<std::optional<int>> largest = trying.Largest(it->second);
      if (it->first == v1::DISTRIBUTION_SCALED ? IsOfProblem(largest.status())
                                               : absl::IsInvalidArgument(largest.status())) {
        if (!found.note.empty()) absl::StrAppend(&found.note, "; ");
        absl::StrAppend(&found.note, DistributionText(it->first), " are not tried: ", largest.status().message());
        largest = std::nullopt;
      }
      if (!largest.ok()) return largest.status();
      if (trying.start_was_wrong()) limited.insert(it->first);
      if (*largest) it->second = **largest;
      it = *largest ? std::next(it) : exponents.erase(it);
    }
  }
  for (const auto& [distribution, exponent] : exponents) found.magnitudes[distribution] = std::ldexp(1.0, exponent);
  std::vector<std::string> parts;
  for (const v1::Distribution distribution : limited) {
    const auto magnitude = found.magnitudes.find(distribution);
    parts.push_back(magnitude == found.magnitudes.end()
                        ? absl::StrCat("not with ", DistributionText(distribution))
                        : absl::StrCat("with ", DistributionText(distribution), " up to ", magnitude->second));
  }
  if (!parts.empty()) {
    if (!found.note.empty()) absl::StrAppend(&found.note, "; ");
    absl::StrAppend(&found.note, "the start variant is right ", absl::StrJoin(parts, ", "),
                    ": candidates are validated with no more. State the range of the inputs if that is too "
                    "little");
  }
  return found;
}

v1::InputDraw FreshDraw(v1::Distribution distribution, double magnitude) {
  v1::InputDraw draw = FreshDraw();
  draw.set_distribution(distribution);
  draw.set_magnitude(magnitude);
  return draw;
}

std::string DistributionText(v1::Distribution distribution) {
  switch (distribution) {
    case v1::DISTRIBUTION_WIDE_NORMAL:
      return "inputs over the whole range";
    case v1::DISTRIBUTION_HEAVY_TAILS:
      return "inputs that are mostly small and sometimes large";
    case v1::DISTRIBUTION_LARGE:
      return "inputs of large magnitude";
    case v1::DISTRIBUTION_EQUAL:
      return "inputs that are all equal";
    case v1::DISTRIBUTION_SORTED:
      return "sorted inputs";
    case v1::DISTRIBUTION_ZEROS:
      return "inputs of zeros";
    case v1::DISTRIBUTION_DENORMAL:
      return "denormal inputs";
    case v1::DISTRIBUTION_EXTREMES:
      return "inputs at the ends of the range";
    case v1::DISTRIBUTION_STRIPED:
      return "inputs with stripes of small values";
    case v1::DISTRIBUTION_SCALED:
      return "the inputs of problem.py times a power of two";
    default:
      return "inputs as the bundle fills them";
  }
}

}  // namespace pawl
