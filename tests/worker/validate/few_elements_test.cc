#include "worker/validate/few_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

// Calls with one output, a sum of `elements` values, and what the reference gave in each.
class FewElementsTest : public testing::Test {
 protected:
  FewElementsTest() {
    plan_.mutable_tolerance()->set_relative(1e-5);
    v1::PlanTensor& tensor = *plan_.add_tensors();
    tensor.set_name("sum");
    tensor.set_role(v1::TENSOR_ROLE_OUTPUT);
    tensor.set_type(v1::DATA_TYPE_F32);
    tensor.set_elements(1);
  }

  // A call whose result should be `value` and is off by `error`. `beside`: what the runner relates small values to.
  void Add(double value, double error, v1::Distribution distribution = v1::DISTRIBUTION_UNSPECIFIED,
           double beside = 0) {
    draws_.emplace_back().set_distribution(distribution);
    v1::OutputError& made = *check_.add_errors();
    made.set_tensor("sum");
    made.set_relative(error / std::max(value, beside));
    check_.add_references()->set_rms(value);
  }

  double RelativeOf(int call) {
    v1::CheckReply check = check_;
    RelateToTypical(plan_, draws_, &check);
    return check.errors(call).relative();
  }

  v1::Plan plan_;
  std::vector<v1::InputDraw> draws_;
  v1::CheckReply check_;
};

TEST_F(FewElementsTest, RelatesWhatHappensToBeSmallToWhatMostCallsGive) {
  for (int i = 0; i < 9; ++i) Add(100, 1e-4);
  Add(1, 1e-4);
  EXPECT_NEAR(RelativeOf(0), 1e-6, 1e-9);
  EXPECT_NEAR(RelativeOf(9), 1e-6, 1e-9) << "the terms of this sum cancel";
}

TEST_F(FewElementsTest, RelatesOtherInputsToTheOwnOnes) {
  Add(1, 1e-6);
  for (int i = 0; i < 9; ++i) Add(100, 1e-6);
  Add(2, 1e-4, v1::DISTRIBUTION_SORTED, 1);
  Add(5000, 1e-4, v1::DISTRIBUTION_SORTED, 1);
  EXPECT_NEAR(RelativeOf(10), 1e-6, 1e-9) << "the first call happened to give little";
  EXPECT_NEAR(RelativeOf(11), 2e-8, 1e-11) << "larger than they are";
}

TEST_F(FewElementsTest, IsNotMisledByOneHugeCall) {
  Add(1e6, 1);
  for (int i = 0; i < 9; ++i) Add(100, 1e-2);
  EXPECT_NEAR(RelativeOf(5), 1e-4, 1e-9);
}

TEST_F(FewElementsTest, HoldsOtherInputsToNoLessWhereTheFirstCallWasHuge) {
  Add(1e6, 1);
  for (int i = 0; i < 9; ++i) Add(100, 1e-6);
  Add(2, 1e-2, v1::DISTRIBUTION_SORTED, 1e6);
  EXPECT_NEAR(RelativeOf(10), 1e-4, 1e-9);
}

class MayBeRoundingTest : public FewElementsTest {
 protected:
  // Of two outputs, one of a single element and one of many.
  MayBeRoundingTest() {
    v1::PlanTensor& many = *plan_.add_tensors();
    many = plan_.tensors(0);
    many.set_name("many");
    many.set_elements(1000);
    call_.failure.emplace().set_check(v1::CHECK_TOLERANCE);
    for (const char* name : {"sum", "many"}) call_.check.add_errors()->set_tensor(name);
  }
  CheckedCall call_;
};

TEST_F(MayBeRoundingTest, IsWhereOnlyTheNormOfFewElementsIsOff) {
  call_.check.mutable_errors(0)->set_relative(1.1e-5);
  EXPECT_TRUE(MayBeRounding(plan_, call_));
  call_.check.mutable_errors(0)->set_wrong(1);
  EXPECT_FALSE(MayBeRounding(plan_, call_));
}

TEST_F(MayBeRoundingTest, IsNotWhereAnotherOutputIsOff) {
  call_.check.mutable_errors(1)->set_relative(1.1e-5);
  EXPECT_FALSE(MayBeRounding(plan_, call_));
  call_.check.mutable_errors(0)->set_relative(1.1e-5);
  EXPECT_FALSE(MayBeRounding(plan_, call_));
}

// A thousand elements gathered from a table of four have as few values.
TEST_F(MayBeRoundingTest, IsWhereNoInputHasManyElements) {
  call_.check.mutable_errors(1)->set_relative(1.1e-5);
  v1::PlanTensor& table = *plan_.add_tensors();
  table.set_name("table");
  table.set_role(v1::TENSOR_ROLE_INPUT);
  table.set_type(v1::DATA_TYPE_F32);
  table.set_elements(4);
  EXPECT_TRUE(MayBeRounding(plan_, call_));
  call_.check.mutable_errors(1)->set_wrong(1);
  EXPECT_FALSE(MayBeRounding(plan_, call_));
  call_.check.mutable_errors(1)->set_wrong(0);
  plan_.mutable_tensors(2)->set_type(v1::DATA_TYPE_I32);
  EXPECT_FALSE(MayBeRounding(plan_, call_)) << "made of no floats";
  plan_.mutable_tensors(2)->set_type(v1::DATA_TYPE_F32);
  v1::PlanTensor& rows = *plan_.add_tensors();
  rows = plan_.tensors(2);
  rows.set_elements(64);
  EXPECT_FALSE(MayBeRounding(plan_, call_)) << "the table may be a scale";
  rows.set_type(v1::DATA_TYPE_I8);
  rows.set_low(-128);
  rows.set_high(127);
  EXPECT_FALSE(MayBeRounding(plan_, call_)) << "the same";
  rows.set_low(0);
  rows.set_high(3);
  EXPECT_TRUE(MayBeRounding(plan_, call_)) << "they say which elements of the table";
}

TEST_F(FewElementsTest, LeavesOutputsOfManyElementsAlone) {
  plan_.mutable_tensors(0)->set_elements(64);
  for (int i = 0; i < 9; ++i) Add(100, 1e-4);
  Add(1, 1e-4);
  EXPECT_NEAR(RelativeOf(9), 1e-4, 1e-9);
}

TEST_F(FewElementsTest, LeavesOutWhatIsNotFinite) {
  Add(INFINITY, 0);
  for (int i = 0; i < 9; ++i) Add(100, 1e-4);
  Add(1, 1e-4);
  EXPECT_NEAR(RelativeOf(10), 1e-6, 1e-9);
}

}  // namespace
}  // namespace pawl
