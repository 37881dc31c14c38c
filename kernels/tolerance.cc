#include "kernels/tolerance.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

constexpr double kTypeFactor = 16;
constexpr double kSumFactor = 64;
constexpr double kAbsoluteFactor = 64;
// What the GPU's approximate functions and tf32 cost beside the roundoff of f32; and the least for f64.
constexpr double kLeastRoundoff = 0x1p-14, kLeastRoundoffOfF64 = 0x1p-37;
// Of integers that are rounded floats, which is the only reason not to be exact.
constexpr double kRoundoffOfIntegers = 0x1p-8;

// Beyond this an output of zeros is hardly worse. Only types of 8 bits come near it.
constexpr double kMostRelative = 0.25;

// Inputs of 8 bits are computed with in a wider type: bf16 at the least.
double RoundoffOfWork(v1::DataType type, bool is_output) {
  const bool wider = ElementBits(type) == 8 && !is_output;
  return UnitRoundoff(wider ? v1::DATA_TYPE_BF16 : type);
}

}  // namespace

double UnitRoundoff(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return 0x1p-11;
    case v1::DATA_TYPE_BF16:
      return 0x1p-8;
    case v1::DATA_TYPE_F32:
      return 0x1p-24;
    case v1::DATA_TYPE_F64:
      return 0x1p-53;
    case v1::DATA_TYPE_F8E4M3:
      return 0x1p-4;
    case v1::DATA_TYPE_F8E5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double ReductionLength(const v1::Plan& plan, const v1::PlanTensor& output) {
  double longest = 1;
  for (const v1::PlanTensor& input : plan.tensors()) {
    if (!IsFilled(input.role())) continue;
    double length = static_cast<double>(input.elements());
    // Extents that both begin with are rows that do not mix. The last one of an input may always be summed over.
    for (int i = 0; i + 1 < input.shape_size() && i < output.shape_size(); ++i) {
      if (input.shape(i) != output.shape(i)) break;
      length /= static_cast<double>(input.shape(i));
    }
    longest = std::max(longest, length);
  }
  return longest;
}

double MostRelative(const v1::Plan& plan, const v1::PlanTensor& output) {
  double roundoff = 0, sum_roundoff = UnitRoundoff(v1::DATA_TYPE_F64);
  bool all_f64 = true;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsFloat(tensor.type()) || (!IsFilled(tensor.role()) && tensor.name() != output.name())) continue;
    roundoff = std::max(roundoff, RoundoffOfWork(tensor.type(), tensor.name() == output.name()));
    all_f64 = all_f64 && tensor.type() == v1::DATA_TYPE_F64;
  }
  if (!all_f64) sum_roundoff = UnitRoundoff(v1::DATA_TYPE_F32);
  roundoff = std::max(roundoff, all_f64 ? kLeastRoundoffOfF64 : kLeastRoundoff);
  if (!IsFloat(output.type())) roundoff = kRoundoffOfIntegers;
  const double sums = kSumFactor * sum_roundoff * std::sqrt(ReductionLength(plan, output));
  return std::min(kMostRelative, kTypeFactor * roundoff + sums);
}

double RoundingOfSums(const v1::Plan& plan, const v1::PlanTensor& output) {
  bool all_f64 = output.type() == v1::DATA_TYPE_F64;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    all_f64 = all_f64 && (!IsFilled(tensor.role()) || !IsFloat(tensor.type()) || tensor.type() == v1::DATA_TYPE_F64);
  }
  const double of_sums = UnitRoundoff(all_f64 ? v1::DATA_TYPE_F64 : v1::DATA_TYPE_F32);
  return UnitRoundoff(output.type()) + 4 * of_sums * (4 + std::sqrt(ReductionLength(plan, output)));
}

double MostAbsolute(const v1::Plan& plan, const v1::PlanTensor& output, double rms) {
  return kAbsoluteFactor * MostRelative(plan, output) * rms;
}

double RoundedDown(double limit) {
  if (!(limit > 0) || !std::isfinite(limit)) return 0;
  const double digit = std::pow(10, std::floor(std::log10(limit)) - 1);
  return std::floor(limit / digit) * digit;
}

std::optional<std::string> UnjustifiedTolerance(const std::vector<const v1::Plan*>& plans) {
  if (plans.empty()) return std::nullopt;
  for (const v1::PlanTensor& output : plans.front()->tensors()) {
    if (!IsCompared(output.role())) continue;
    const v1::Tolerance& tolerance = ToleranceOf(*plans.front(), output);
    double most = 0, length = 0;
    for (const v1::Plan* plan : plans) {
      for (const v1::PlanTensor& same : plan->tensors()) {
        if (same.name() != output.name()) continue;
        most = std::max(most, MostRelative(*plan, same));
        length = std::max(length, ReductionLength(*plan, same));
      }
    }
    if (tolerance.exact() || tolerance.relative() <= most) continue;
    return absl::StrCat("the relative tolerance of ", output.name(), " is ", tolerance.relative(),
                        ", far above what its type and sums of up to ", length,
                        " values justify; relative = ", RoundedDown(most), " would do");
  }
  return std::nullopt;
}

}  // namespace pawl
