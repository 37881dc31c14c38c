#include "worker/validate/blind_reference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/build/built_variant.h"
#include "worker/validate/load_built.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr absl::Duration kBlindDeadline = absl::Seconds(60);
constexpr double kLargestInteger = 1023;  // of an integer input without a range (arena.cc)

// Other values of one input from the same draw, within its range; false: the range has one value only.
bool DrawOtherwise(v1::PlanTensor* tensor) {
  if (tensor->has_low() && tensor->has_high() && !(tensor->low() < tensor->high())) return false;
  // What has a structure has few other values that are valid, and which of them matter, nobody says.
  const bool integers = tensor->fill() == v1::FILL_INTEGERS || !IsFloat(tensor->type());
  if (tensor->fill() > v1::FILL_INTEGERS && tensor->fill() != v1::FILL_UNIFORM_RANGE) return false;
  if (tensor->fill() == v1::FILL_UNIFORM_RANGE) {  // which may be the range of FILL_UNIFORM
    tensor->set_high(tensor->low() + (tensor->high() - tensor->low()) / 2);
    return true;
  }
  if (integers) {
    const double most = std::min(kLargestInteger, LargestOf(tensor->type()));
    const double low = tensor->has_low() ? tensor->low() : 0, high = tensor->has_high() ? tensor->high() : most;
    if (!(low < high)) return false;
    tensor->set_low(low);
    tensor->set_high(low + std::floor((high - low) / 2));
    return true;
  }
  tensor->set_fill(tensor->fill() == v1::FILL_UNIFORM ? v1::FILL_NORMAL : v1::FILL_UNIFORM);
  return true;
}

absl::StatusOr<v1::RunnerReply> AskReference(GpuDevice& device, const v1::RunnerRequest& request) {
  absl::StatusOr<v1::RunnerReply> reply = device.reference().Ask(request, kBlindDeadline);
  if (reply.ok() && reply->has_failure()) return absl::InvalidArgumentError(reply->failure().message());
  return reply;
}

// Of the inputs of the reference's plan at one size.
absl::StatusOr<std::set<std::string>> BlindAt(GpuDevice& device, const v1::Bundle& bundle, const v1::Size& size) {
  absl::StatusOr<BuiltSize> reference =
      BuildReference(device.builder(), bundle, size, device.gpu(), &device.references(), device.stopped());
  if (!reference.ok()) return reference.status();
  absl::StatusOr<v1::RunnerReply> loaded = LoadBuilt(device.reference(), *reference);
  if (!loaded.ok()) return loaded.status();
  if (loaded->has_failure()) return absl::InvalidArgumentError(loaded->failure().message());

  const v1::InputDraw draw = FreshDraw();
  v1::RunnerRequest first;
  first.mutable_call()->set_module(reference->module);
  *first.mutable_call()->mutable_plan() = reference->plan;
  *first.mutable_call()->mutable_draw() = draw;
  first.mutable_call()->set_repeats(1);
  first.mutable_call()->set_deterministic(true);
  if (absl::StatusOr<v1::RunnerReply> called = AskReference(device, first); !called.ok()) return called.status();

  std::set<std::string> blind;
  for (int i = 0; i < reference->plan.tensors_size(); ++i) {
    if (!IsFilled(reference->plan.tensors(i).role())) continue;
    v1::RunnerRequest again;
    again.mutable_check()->set_module(reference->module);
    *again.mutable_check()->mutable_plan() = reference->plan;
    *again.mutable_check()->add_draws() = draw;
    if (!DrawOtherwise(again.mutable_check()->mutable_plan()->mutable_tensors(i))) continue;
    absl::StatusOr<v1::RunnerReply> checked = AskReference(device, again);
    if (!checked.ok()) return checked.status();
    const auto& errors = checked->check().errors();
    const bool same = !errors.empty() && std::all_of(errors.begin(), errors.end(), [](const v1::OutputError& error) {
      return error.max_absolute() == 0 && error.wrong() == 0 && error.non_finite() == 0;
    });
    if (same) blind.insert(reference->plan.tensors(i).name());
  }
  return blind;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> BlindInputs(GpuDevice& device, const v1::Bundle& bundle) {
  // Of data that depend on other data no other values are known to be valid.
  if (HasProblem(bundle)) return std::vector<std::string>();
  absl::StatusOr<std::set<std::string>> blind = BlindAt(device, bundle, bundle.sizes(0));
  if (!blind.ok()) return blind.status();
  // At a small size an input may not matter: of softmax of one column none does.
  if (!blind->empty() && bundle.sizes(0).name() != bundle.goal().size()) {
    const v1::Size* goal = FindSize(bundle, bundle.goal().size());
    if (goal == nullptr) return std::vector<std::string>();
    const absl::StatusOr<std::set<std::string>> there = BlindAt(device, bundle, *goal);
    if (!there.ok()) return there.status();
    std::erase_if(*blind, [&](const std::string& name) { return !there->contains(name); });
  }
  return std::vector<std::string>(blind->begin(), blind->end());
}

std::string BlindReferenceWarning(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return "";
  return absl::StrCat("the reference's outputs do not depend on the input", inputs.size() == 1 ? " " : "s ",
                      absl::StrJoin(inputs, ", "),
                      ": a variant that ignores it would pass validation. Is the reference complete?");
}

}  // namespace pawl
