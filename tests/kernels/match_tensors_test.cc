#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/plan.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;

void AddTensor(v1::Plan* plan, const std::string& name, int64_t elements) {
  plan->add_tensors()->set_name(name);
  plan->mutable_tensors()->rbegin()->set_elements(elements);
}

std::vector<std::string> Names(const v1::Plan& plan) {
  std::vector<std::string> names;
  for (const v1::PlanTensor& tensor : plan.tensors()) names.push_back(tensor.name());
  return names;
}

const std::string& NameOf(const v1::Plan& plan, const v1::PlanArgument& argument) {
  return plan.tensors(argument.tensor()).name();
}

TEST(MatchTensors, LeavesPlansOfTheSameTensorsAlone) {
  v1::Plan a, b;
  AddTensor(&a, "in", 1);
  AddTensor(&a, "out", 2);
  b = a;
  b.mutable_tensors(1)->set_elements(7);
  const std::string before_a = a.SerializeAsString(), before_b = b.SerializeAsString();
  MatchTensors({&a, &b});
  EXPECT_EQ(a.SerializeAsString(), before_a);
  EXPECT_EQ(b.SerializeAsString(), before_b);
}

TEST(MatchTensors, GivesEachPlanTheScratchOfTheOthersAndKeepsWhatArgumentsName) {
  v1::Plan a, b, c;
  for (const char* name : {"in", "partial", "out"}) AddTensor(&a, name, 10);
  for (const char* name : {"out", "in", "counters"}) AddTensor(&b, name, 20);
  for (const char* name : {"in", "out"}) AddTensor(&c, name, 30);
  v1::PlanLaunch& launch = *b.add_launches();
  for (int i = 0; i < 3; ++i) launch.add_arguments()->set_tensor(i);
  launch.add_arguments()->mutable_fields()->add_fields()->set_tensor(2);
  launch.add_arguments()->set_i32(1);
  launch.add_swap(0);
  launch.add_swap(2);
  b.add_symbols()->set_tensor(1);
  MatchTensors({&a, &b, &c});
  for (const v1::Plan* plan : {&a, &b, &c}) {
    EXPECT_THAT(Names(*plan), ElementsAre("in", "partial", "out", "counters"));
  }
  EXPECT_EQ(b.tensors(2).elements(), 20) << "its own, not the first plan's";
  EXPECT_EQ(b.tensors(1).elements(), 10) << "the other's, of which it has none";
  const v1::PlanLaunch& matched = b.launches(0);
  EXPECT_EQ(NameOf(b, matched.arguments(0)), "out");
  EXPECT_EQ(NameOf(b, matched.arguments(1)), "in");
  EXPECT_EQ(NameOf(b, matched.arguments(2)), "counters");
  EXPECT_EQ(NameOf(b, matched.arguments(3).fields().fields(0)), "counters");
  EXPECT_EQ(matched.arguments(4).i32(), 1);
  EXPECT_THAT(matched.swap(), ElementsAre(2, 3));
  EXPECT_EQ(b.tensors(b.symbols(0).tensor()).name(), "in");
}

TEST(MatchTensors, PlacesScratchOfOneNameAsTheStrictestPlanAsks) {
  v1::Plan a, b;
  AddTensor(&a, "counts", 7);
  AddTensor(&b, "counts", 9);
  for (v1::Plan* plan : {&a, &b}) plan->mutable_tensors(0)->set_role(v1::TENSOR_ROLE_SCRATCH);
  b.mutable_tensors(0)->set_align(512);
  MatchTensors({&a, &b});
  EXPECT_EQ(a.tensors(0).align(), 512);
  EXPECT_EQ(b.tensors(0).align(), 512);
  EXPECT_EQ(a.tensors(0).elements(), 7);
  EXPECT_EQ(b.tensors(0).elements(), 9);
}

}  // namespace
}  // namespace pawl
