#include "worker/build/plan_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As C++ lays it out.
struct Mixed {
  signed char first;
  float* data;
  int n;
  double scale;
  short last;
};

v1::PlanStruct MixedFields() {
  v1::PlanStruct fields;
  fields.add_fields()->set_raw(std::string(1, '\x07'));
  fields.add_fields()->set_tensor(1);
  fields.add_fields()->set_i32(42);
  fields.add_fields()->set_f64(0.5);
  fields.add_fields()->set_raw(std::string("\x01\x02", 2));
  return fields;
}

TEST(LayoutOf, IsThatOfC) {
  const StructLayout layout = LayoutOf(MixedFields());
  EXPECT_EQ(layout.bytes, static_cast<int>(sizeof(Mixed)));
  EXPECT_THAT(layout.offsets, ElementsAre(offsetof(Mixed, first), offsetof(Mixed, data), offsetof(Mixed, n),
                                          offsetof(Mixed, scale), offsetof(Mixed, last)));
  EXPECT_EQ(LayoutOf(v1::PlanStruct()).bytes, 0);
}

TEST(LayoutOf, PutsPointersOneBehindAnother) {
  v1::PlanStruct pointers;
  for (int i = 0; i < 3; ++i) pointers.add_fields()->set_tensor(i);
  EXPECT_THAT(LayoutOf(pointers).offsets, ElementsAre(0, 8, 16));
  EXPECT_EQ(LayoutOf(pointers).bytes, 24);
}

TEST(StructContent, HoldsTheValues) {
  const std::string content = StructContent(MixedFields(), {0x10, 0x7f0000000020}, 3);
  Mixed mixed;
  ASSERT_EQ(content.size(), sizeof(mixed));
  std::memcpy(&mixed, content.data(), sizeof(mixed));
  EXPECT_EQ(mixed.first, 7);
  EXPECT_EQ(reinterpret_cast<uint64_t>(mixed.data), 0x7f0000000020u);
  EXPECT_EQ(mixed.n, 42);
  EXPECT_EQ(mixed.scale, 0.5);
  EXPECT_EQ(mixed.last, 0x0201);
}

TEST(ArgumentContent, CountsTheLaunches) {
  v1::PlanArgument argument;
  argument.set_index(true);
  EXPECT_EQ(ArgumentBytes(argument), 4);
  int32_t index = 0;
  const std::string content = ArgumentContent(argument, {}, 9'999);
  ASSERT_EQ(content.size(), sizeof(index));
  std::memcpy(&index, content.data(), sizeof(index));
  EXPECT_EQ(index, 9'999);
}

v1::Plan Swapping(std::vector<int> repeats) {
  v1::Plan plan;
  plan.set_size("main");
  for (const char* name : {"ping", "pong", "other"}) {
    v1::PlanTensor& tensor = *plan.add_tensors();
    tensor.set_name(name);
    tensor.set_type(v1::DATA_TYPE_F32);
    tensor.set_elements(10);
    tensor.set_role(v1::TENSOR_ROLE_INOUT);
  }
  for (const int repeat : repeats) {
    v1::PlanLaunch& launch = *plan.add_launches();
    launch.set_entry("step");
    launch.set_repeat(repeat);
    launch.add_swap(0);
    launch.add_swap(1);
  }
  return plan;
}

TEST(BuffersAfter, FollowsEveryExchange) {
  EXPECT_THAT(BuffersAfter(Swapping({4})), ElementsAre(0, 1, 2));
  EXPECT_THAT(BuffersAfter(Swapping({5})), ElementsAre(1, 0, 2));
  EXPECT_THAT(BuffersAfter(Swapping({0})), ElementsAre(1, 0, 2)) << "not to be repeated is once";
  EXPECT_THAT(BuffersAfter(Swapping({3, 7})), ElementsAre(0, 1, 2));
  v1::Plan round = Swapping({1, 1});
  round.mutable_launches(1)->set_swap(0, 1);
  round.mutable_launches(1)->set_swap(1, 2);
  EXPECT_THAT(BuffersAfter(round), ElementsAre(1, 2, 0));
}

TEST(CheckResultPlaces, WantsEachResultWhereTheStartLeavesIt) {
  EXPECT_FALSE(CheckResultPlaces(Swapping({4}), Swapping({2})).has_value());
  EXPECT_FALSE(CheckResultPlaces(Swapping({3}), Swapping({5})).has_value()) << "both in the other's buffer";
  const std::optional<v1::Failure> failure = CheckResultPlaces(Swapping({3}), Swapping({4}));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->stage(), v1::STAGE_STATIC_CHECK);
  EXPECT_EQ(failure->size(), "main");
  EXPECT_EQ(failure->message(),
            "the result of ping is left in the buffer of pong at size main, where the start variant leaves it in that "
            "of ping: copy it there as part of the call, or change `swap` or `repeat`");
  EXPECT_TRUE(CheckResultPlaces(Swapping({4}), Swapping({3})).has_value()) << "its callers look in pong";
  EXPECT_THAT(CheckResultPlaces(Swapping({3}), Swapping({}))->message(), HasSubstr("where the contract wants it"));
}

TEST(CheckResultPlaces, MatchesTensorsByNameAndLeavesScratchAlone) {
  v1::Plan start = Swapping({3});
  start.mutable_tensors(1)->set_role(v1::TENSOR_ROLE_SCRATCH);
  v1::Plan plan = start;
  plan.mutable_tensors()->SwapElements(0, 2);
  plan.mutable_launches(0)->set_swap(0, 2);
  EXPECT_FALSE(CheckResultPlaces(plan, start).has_value()) << "in another order";
  plan.mutable_tensors(1)->set_name("own");
  EXPECT_THAT(CheckResultPlaces(plan, start)->message(), HasSubstr("is left in the buffer of own"));
  plan = Swapping({3});
  plan.mutable_tensors(0)->set_role(v1::TENSOR_ROLE_SCRATCH);
  plan.mutable_tensors(1)->set_role(v1::TENSOR_ROLE_SCRATCH);
  EXPECT_FALSE(CheckResultPlaces(plan, Swapping({4})).has_value());
}

// Two launches of a loop, then one by itself: "0.0" is the first launch in its first round.
std::string OrderOf(int rounds) {
  v1::Plan plan = Swapping({rounds, rounds, 1});
  plan.mutable_launches(0)->set_loop(2);
  plan.mutable_launches(0)->clear_swap();
  plan.mutable_launches(2)->clear_swap();
  std::string order;
  EXPECT_TRUE(VisitInOrder(plan.launches(), [&](int launch, int32_t index) {
                absl::StrAppend(&order, launch, ".", index, " ");
                return absl::OkStatus();
              }).ok());
  return absl::StrCat(order, "after: ", absl::StrJoin(BuffersAfter(plan), ","));
}

TEST(VisitInOrder, TakesTurnsInALoopAndExchangesOncePerRound) {
  EXPECT_EQ(OrderOf(1), "0.0 1.0 2.0 after: 1,0,2");
  EXPECT_EQ(OrderOf(2), "0.0 1.0 0.1 1.1 2.0 after: 0,1,2");
  EXPECT_EQ(OrderOf(3), "0.0 1.0 0.1 1.1 0.2 1.2 2.0 after: 1,0,2");
}

TEST(CheckPlan, RefusesABrokenLoopAndASymbolWithoutATensor) {
  v1::Plan plan = Swapping({2, 2});
  plan.mutable_launches(0)->set_loop(2);
  EXPECT_TRUE(CheckPlan(plan).ok());
  plan.mutable_launches(1)->set_repeat(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan.mutable_launches(1)->set_repeat(2);
  plan.mutable_launches(0)->set_loop(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan.mutable_launches(0)->set_loop(2);
  plan.add_symbols()->set_tensor(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan.mutable_symbols(0)->set_tensor(2);
  EXPECT_TRUE(CheckPlan(plan).ok());
}

TEST(CheckPlan, RefusesWhatCannotBeLaunched) {
  EXPECT_TRUE(CheckPlan(Swapping({3})).ok());
  v1::Plan plan = Swapping({3});
  plan.mutable_tensors(1)->set_elements(11);
  EXPECT_THAT(std::string(CheckPlan(plan).message()),
              HasSubstr("ping and pong, which have 40 and 44 bytes at size main"));
  plan = Swapping({3});
  plan.mutable_launches(0)->add_arguments()->set_tensor(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan = Swapping({3});
  plan.mutable_launches(0)->set_swap(0, -1);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan = Swapping({3});
  plan.mutable_launches(0)->add_arguments();
  EXPECT_THAT(std::string(CheckPlan(plan).message()), HasSubstr("has no value"));
  plan = Swapping({3});
  plan.mutable_launches(0)->add_arguments()->mutable_fields()->add_fields()->set_tensor(99);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan = Swapping({3});
  plan.mutable_launches(0)->add_arguments()->set_raw("abc");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
  plan = Swapping({3});
  *plan.add_setup() = plan.launches(0);
  plan.mutable_setup(0)->add_arguments()->set_tensor(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlan(plan)));
}

}  // namespace
}  // namespace pawl
