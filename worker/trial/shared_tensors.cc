#include "worker/trial/shared_tensors.h"

#include <algorithm>
#include <map>
#include <string>

namespace pawl {
namespace {

constexpr int kDefaultAlign = 256;

int AlignOf(const v1::PlanTensor& tensor) { return tensor.align() > 0 ? tensor.align() : kDefaultAlign; }

void Renumber(const std::vector<int>& numbers, v1::PlanArgument* argument) {
  if (argument->argument_case() == v1::PlanArgument::kTensor) {
    argument->set_tensor(numbers[static_cast<size_t>(argument->tensor())]);
  } else if (argument->has_fields()) {
    for (v1::PlanArgument& field : *argument->mutable_fields()->mutable_fields()) Renumber(numbers, &field);
  }
}

void Renumber(const std::vector<int>& numbers, google::protobuf::RepeatedPtrField<v1::PlanLaunch>* launches) {
  for (v1::PlanLaunch& launch : *launches) {
    for (v1::PlanArgument& argument : *launch.mutable_arguments()) Renumber(numbers, &argument);
    for (int& tensor : *launch.mutable_swap()) tensor = numbers[static_cast<size_t>(tensor)];
  }
}

}  // namespace

void ShareTensors(const std::vector<v1::Plan*>& plans) {
  std::vector<v1::PlanTensor> all;
  std::map<std::string, int> places;
  for (const v1::Plan* plan : plans) {
    for (const v1::PlanTensor& tensor : plan->tensors()) {
      const auto [known, added] = places.try_emplace(tensor.name(), static_cast<int>(all.size()));
      if (added) {
        all.push_back(tensor);
      } else if (v1::PlanTensor& first = all[static_cast<size_t>(known->second)]; AlignOf(tensor) > AlignOf(first)) {
        first.set_align(tensor.align());
      }
    }
  }
  for (v1::Plan* plan : plans) {
    std::vector<int> numbers;  // by the plan's own
    std::vector<v1::PlanTensor> shared = all;
    for (const v1::PlanTensor& tensor : plan->tensors()) {
      const int place = places.at(tensor.name());
      v1::PlanTensor& to = shared[static_cast<size_t>(place)];
      const int align = to.align();
      to = tensor;
      if (tensor.role() == v1::TENSOR_ROLE_SCRATCH) to.set_align(align);
      numbers.push_back(place);
    }
    Renumber(numbers, plan->mutable_launches());
    Renumber(numbers, plan->mutable_setup());
    plan->mutable_tensors()->Assign(shared.begin(), shared.end());
  }
}

}  // namespace pawl
