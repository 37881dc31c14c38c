#include "worker/validate/few_elements.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/validate/other_inputs.h"

namespace pawl {
namespace {

bool IsOfFew(const v1::PlanTensor& tensor) {
  return IsCompared(tensor.role()) && IsFloat(tensor.type()) && tensor.elements() < kFewElements;
}

}  // namespace

bool MayBeRounding(const v1::Plan& plan, const CheckedCall& call) {
  if (!call.failure || call.failure->check() != v1::CHECK_TOLERANCE || call.check.verdicts_size() > 0) return false;
  const auto& errors = call.check.errors();
  return std::all_of(errors.begin(), errors.end(), [](const v1::OutputError& error) { return error.wrong() == 0; }) &&
         std::any_of(plan.tensors().begin(), plan.tensors().end(), IsOfFew);
}

void RelateToTypical(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws, v1::CheckReply* check) {
  if (draws.empty() || check->errors_size() == 0 || check->references_size() != check->errors_size()) return;
  const size_t outputs = static_cast<size_t>(check->errors_size()) / draws.size();
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsOfFew(tensor)) continue;
    double squares = 0, first = 0;
    int calls = 0;
    const auto each = [&](const auto& visit) {
      for (int i = 0; i < check->errors_size(); ++i) {
        if (check->errors(i).tensor() == tensor.name()) visit(i, IsOfOwnFill(draws[static_cast<size_t>(i) / outputs]));
      }
    };
    each([&](int i, bool own) {
      const double rms = check->references(i).rms();
      if (!own || !std::isfinite(rms)) return;
      if (calls++ == 0) first = rms;
      squares += rms * rms;
    });
    if (calls == 0) continue;
    const double typical = std::sqrt(squares / calls);
    each([&](int i, bool own) {
      // What the error is relative to: with other inputs at least to what the first call with the own ones gave.
      const double base = std::max(check->references(i).rms(), own ? 0 : first);
      if (base > 0 && base < typical)
        check->mutable_errors(i)->set_relative(check->errors(i).relative() * base / typical);
    });
  }
}

}  // namespace pawl
