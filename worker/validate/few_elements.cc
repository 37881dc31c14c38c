#include "worker/validate/few_elements.h"

#include <algorithm>
#include <cmath>

#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/validate/other_inputs.h"

namespace pawl {
namespace {

bool HasFew(const v1::PlanTensor& tensor) { return tensor.elements() < kFewElements; }

bool IsOfFew(const v1::Plan& plan, const v1::PlanTensor& tensor) {
  if (!IsCompared(tensor.role()) || !IsFloat(tensor.type())) return false;
  if (HasFew(tensor)) return true;
  int64_t largest_table = 0;
  for (const v1::PlanTensor& other : plan.tensors()) {
    if (!IsFilled(other.role()) || !IsFloat(other.type())) continue;
    if (!HasFew(other)) return false;
    largest_table = std::max(largest_table, other.elements());
  }
  // Integers that are no index into one of these are values themselves.
  const auto is_index = [&](const v1::PlanTensor& input) {
    return input.has_low() && input.low() >= 0 && input.high() < static_cast<double>(largest_table);
  };
  return largest_table > 0 && std::all_of(plan.tensors().begin(), plan.tensors().end(), [&](const auto& input) {
           return !IsFilled(input.role()) || IsFloat(input.type()) || HasFew(input) || is_index(input);
         });
}

const v1::PlanTensor* FindTensor(const v1::Plan& plan, const std::string& name) {
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

// Whether the reply has the same outputs of each draw, and what they should be.
bool IsWhole(const std::vector<v1::InputDraw>& draws, const v1::CheckReply& check) {
  return !draws.empty() && check.errors_size() > 0 && check.references_size() == check.errors_size() &&
         check.errors_size() % static_cast<int>(draws.size()) == 0;
}

// Of an output in the calls with own inputs, in order.
std::vector<double> OwnRms(const std::vector<v1::InputDraw>& draws, const v1::CheckReply& check, int output) {
  const int outputs = check.errors_size() / static_cast<int>(draws.size());
  std::vector<double> all;
  for (size_t draw = 0; draw < draws.size(); ++draw) {
    const double rms = check.references(static_cast<int>(draw) * outputs + output).rms();
    if (IsOfOwnFill(draws[draw]) && std::isfinite(rms)) all.push_back(rms);
  }
  return all;
}

}  // namespace

bool MayBeRounding(const v1::Plan& plan, const CheckedCall& call) {
  if (!call.failure || call.failure->check() != v1::CHECK_TOLERANCE || call.check.verdicts_size() > 0) return false;
  bool any = false;
  for (const v1::OutputError& error : call.check.errors()) {
    const v1::PlanTensor* tensor = FindTensor(plan, error.tensor());
    if (tensor == nullptr) return false;
    if (WithinTolerance(error, ToleranceOf(plan, *tensor))) continue;
    if (error.wrong() > 0 || !IsOfFew(plan, *tensor)) return false;
    any = true;
  }
  return any;
}

std::vector<double> TypicalRms(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws,
                               const v1::CheckReply& check) {
  std::vector<double> typical;
  if (!IsWhole(draws, check)) return typical;
  for (int output = 0; output < check.errors_size() / static_cast<int>(draws.size()); ++output) {
    std::vector<double> all = OwnRms(draws, check, output);
    const v1::PlanTensor* tensor = FindTensor(plan, check.errors(output).tensor());
    if (all.size() > 1 && tensor != nullptr && IsOfFew(plan, *tensor)) {
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
      all[0] = all[all.size() / 2];
    }
    typical.push_back(all.empty() ? 0 : all[0]);
  }
  return typical;
}

void RelateToTypical(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws, v1::CheckReply* check) {
  const std::vector<double> typical = TypicalRms(plan, draws, *check);
  const int outputs = static_cast<int>(typical.size());
  for (int output = 0; output < outputs; ++output) {
    const v1::PlanTensor* tensor = FindTensor(plan, check->errors(output).tensor());
    const std::vector<double> own = OwnRms(draws, *check, output);
    if (tensor == nullptr || !IsOfFew(plan, *tensor) || own.empty()) continue;
    for (size_t draw = 0; draw < draws.size(); ++draw) {
      const int i = static_cast<int>(draw) * outputs + output;
      const double rms = check->references(i).rms();
      const double related_to = std::max(rms, IsOfOwnFill(draws[draw]) ? 0 : own[0]);
      const double now = std::max(rms, typical[static_cast<size_t>(output)]);
      if (!(related_to > 0) || !std::isfinite(related_to) || !(now > 0)) continue;
      check->mutable_errors(i)->set_relative(check->errors(i).relative() * related_to / now);
    }
  }
}

}  // namespace pawl
