// Tensors of plans that run on the same buffers (declared in plan.h).
#include <map>
#include <string>
#include <vector>

#include "kernels/plan.h"

namespace pawl {
namespace {

constexpr int kDefaultAlign = 256;  // as buffers are placed

int AlignOf(const v1::PlanTensor& tensor) { return tensor.align() > 0 ? tensor.align() : kDefaultAlign; }

void Renumber(const std::vector<int>& places, v1::PlanArgument* argument) {
  if (argument->has_tensor()) argument->set_tensor(places[static_cast<size_t>(argument->tensor())]);
  if (!argument->has_fields()) return;
  for (v1::PlanArgument& field : *argument->mutable_fields()->mutable_fields()) Renumber(places, &field);
}

// Puts the plan's tensors where `all` has those of their names; the others stay in their places.
void Reorder(const std::vector<v1::PlanTensor>& all, const std::map<std::string, int>& place_of, v1::Plan* plan) {
  std::vector<v1::PlanTensor> tensors = all;
  std::vector<int> places;
  for (const v1::PlanTensor& tensor : plan->tensors()) {
    places.push_back(place_of.at(tensor.name()));
    v1::PlanTensor& to = tensors[static_cast<size_t>(places.back())];
    const int align = to.align();
    to = tensor;
    if (tensor.role() == v1::TENSOR_ROLE_SCRATCH) to.set_align(align);
  }
  plan->mutable_tensors()->Assign(tensors.begin(), tensors.end());
  for (auto* launches : {plan->mutable_launches(), plan->mutable_setup()}) {
    for (v1::PlanLaunch& launch : *launches) {
      for (v1::PlanArgument& argument : *launch.mutable_arguments()) Renumber(places, &argument);
      for (int32_t& swapped : *launch.mutable_swap()) swapped = places[static_cast<size_t>(swapped)];
    }
  }
  for (v1::PlanSymbol& symbol : *plan->mutable_symbols()) {
    symbol.set_tensor(places[static_cast<size_t>(symbol.tensor())]);
  }
}

}  // namespace

void MatchTensors(const std::vector<v1::Plan*>& plans) {
  std::vector<v1::PlanTensor> all;
  std::map<std::string, int> place_of;
  for (const v1::Plan* plan : plans) {
    for (const v1::PlanTensor& tensor : plan->tensors()) {
      const auto [known, added] = place_of.try_emplace(tensor.name(), static_cast<int>(all.size()));
      if (added) {
        all.push_back(tensor);
      } else if (v1::PlanTensor& first = all[static_cast<size_t>(known->second)]; AlignOf(tensor) > AlignOf(first)) {
        first.set_align(tensor.align());
      }
    }
  }
  for (v1::Plan* plan : plans) Reorder(all, place_of, plan);
}

}  // namespace pawl
