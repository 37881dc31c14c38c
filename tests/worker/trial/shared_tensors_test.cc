#include "worker/trial/shared_tensors.h"

#include <gtest/gtest.h>

#include <string>

namespace pawl {
namespace {

void AddTensor(v1::Plan* plan, const std::string& name, v1::TensorRole role, int64_t elements, int align = 0) {
  v1::PlanTensor& tensor = *plan->add_tensors();
  tensor.set_name(name);
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.set_role(role);
  tensor.set_elements(elements);
  tensor.set_align(align);
}

// The names of a launch's tensors, those in structs too.
std::string Names(const v1::Plan& plan, const v1::PlanArgument& argument) {
  if (argument.has_fields()) {
    std::string names;
    for (const v1::PlanArgument& field : argument.fields().fields()) names += Names(plan, field);
    return names;
  }
  return argument.argument_case() == v1::PlanArgument::kTensor ? plan.tensors(argument.tensor()).name() + " " : "";
}

std::string Names(const v1::Plan& plan) {
  std::string names;
  for (const v1::PlanLaunch& launch : plan.launches()) {
    for (const v1::PlanArgument& argument : launch.arguments()) names += Names(plan, argument);
    for (const int tensor : launch.swap()) names += "swap " + plan.tensors(tensor).name() + " ";
  }
  return names;
}

TEST(SharedTensorsTest, MatchesTensorsByNameWhateverTheirOrder) {
  v1::Plan candidate, parent;
  AddTensor(&candidate, "in", v1::TENSOR_ROLE_INPUT, 100);
  AddTensor(&candidate, "out", v1::TENSOR_ROLE_OUTPUT, 100);
  AddTensor(&candidate, "counts", v1::TENSOR_ROLE_SCRATCH, 7);
  AddTensor(&parent, "in", v1::TENSOR_ROLE_INPUT, 100);
  AddTensor(&parent, "partial", v1::TENSOR_ROLE_SCRATCH, 50);
  AddTensor(&parent, "out", v1::TENSOR_ROLE_OUTPUT, 100);
  AddTensor(&parent, "counts", v1::TENSOR_ROLE_SCRATCH, 9, 512);
  for (v1::Plan* plan : {&candidate, &parent}) {
    v1::PlanLaunch& launch = *plan->add_launches();
    for (int i = 0; i < plan->tensors_size(); ++i) launch.add_arguments()->set_tensor(i);
    launch.add_arguments()->mutable_fields()->add_fields()->set_tensor(1);
    launch.add_arguments()->set_i32(1);
    launch.add_swap(1);
    launch.add_swap(2);
  }
  const std::string of_candidate = Names(candidate), of_parent = Names(parent);
  ShareTensors({&candidate, &parent});
  ASSERT_EQ(candidate.tensors_size(), 4);
  ASSERT_EQ(parent.tensors_size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(candidate.tensors(i).name(), parent.tensors(i).name());
  EXPECT_EQ(candidate.tensors(2).name(), "counts") << "the candidate keeps its order";
  EXPECT_EQ(Names(candidate), of_candidate);
  EXPECT_EQ(Names(parent), of_parent);
  EXPECT_EQ(candidate.tensors(2).elements(), 7);
  EXPECT_EQ(parent.tensors(2).elements(), 9);
  EXPECT_EQ(candidate.tensors(2).align(), 512) << "both are placed where the stricter of them may be";
  EXPECT_EQ(candidate.tensors(3).name(), "partial");
  EXPECT_EQ(candidate.tensors(3).role(), v1::TENSOR_ROLE_SCRATCH);
  EXPECT_EQ(parent.launches(0).arguments(5).i32(), 1);
}

TEST(SharedTensorsTest, LeavesPlansAloneThatAreAlike) {
  v1::Plan plan;
  AddTensor(&plan, "in", v1::TENSOR_ROLE_INPUT, 100, 16);
  AddTensor(&plan, "out", v1::TENSOR_ROLE_OUTPUT, 100);
  plan.add_launches()->add_arguments()->set_tensor(1);
  v1::Plan other = plan;
  const std::string before = plan.SerializeAsString();
  ShareTensors({&plan, &other});
  EXPECT_EQ(plan.SerializeAsString(), before);
  EXPECT_EQ(other.SerializeAsString(), before);
}

}  // namespace
}  // namespace pawl
