#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "worker/validate/checked_call.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::Plan Plan() {
  v1::Plan plan;
  plan.set_size("medium");
  plan.mutable_tolerance()->set_absolute(0.01);
  plan.mutable_tolerance()->set_relative(0.001);
  for (const char* name : {"in", "out", "sums"}) {
    v1::PlanTensor& tensor = *plan.add_tensors();
    tensor.set_name(name);
    for (int extent : {2, 3, 4}) tensor.add_shape(extent);
    tensor.set_elements(24);
  }
  return plan;
}

v1::OutputError Right(const std::string& tensor = "out") {
  v1::OutputError error;
  error.set_tensor(tensor);
  error.set_max_absolute(0.009);
  error.set_mean_absolute(0.002);
  error.set_relative(0.0009);
  error.set_elements(24);
  error.set_first_wrong(-1);
  return error;
}

v1::OutputError Wrong(const std::string& tensor = "out") {
  v1::OutputError error = Right(tensor);
  error.set_max_absolute(4.25);
  error.set_mean_absolute(0.5);
  error.set_relative(0.75);
  error.set_wrong(6);
  error.set_first_wrong(23 - 4);  // [1,1,3]
  error.set_got(-1.5);
  error.set_expected(2.75);
  return error;
}

std::optional<v1::Failure> Judge(const std::vector<v1::OutputError>& errors) {
  return JudgeErrors(Plan(), {errors.begin(), errors.end()});
}

TEST(JudgeErrors, AcceptsWhatIsWithinBothLimits) {
  EXPECT_FALSE(Judge({}).has_value());
  EXPECT_FALSE(Judge({Right(), Right("sums")}).has_value());
  v1::OutputError at_the_limit = Right();
  at_the_limit.set_relative(0.001);
  EXPECT_FALSE(Judge({at_the_limit}).has_value());
}

TEST(JudgeErrors, WantsBothLimitsToHold) {
  v1::OutputError relative = Right();
  relative.set_relative(0.0011);
  ASSERT_TRUE(Judge({relative}).has_value());
  EXPECT_EQ(Judge({relative})->check(), v1::CHECK_TOLERANCE);
  v1::OutputError absolute = Wrong();
  absolute.set_relative(0);
  EXPECT_TRUE(Judge({absolute}).has_value());
}

TEST(JudgeErrors, RejectsAnErrorThatIsNotANumber) {
  v1::OutputError error = Right();
  error.set_relative(std::nan(""));
  ASSERT_TRUE(Judge({error}).has_value());
  EXPECT_THAT(Judge({error})->message(), HasSubstr("relative nan"));
}

TEST(JudgeErrors, CallsNonFiniteValuesByTheirName) {
  v1::OutputError error = Wrong();
  error.set_non_finite(1);
  error.set_got(std::numeric_limits<double>::infinity());
  ASSERT_TRUE(Judge({error}).has_value());
  EXPECT_EQ(Judge({error})->check(), v1::CHECK_NON_FINITE);
  EXPECT_THAT(Judge({error})->message(), HasSubstr("is inf, expected 2.75"));
}

TEST(JudgeErrors, SaysWhereItWentWrongAndByHowMuch) {
  const std::optional<v1::Failure> failure = Judge({Right("sums"), Wrong("out"), Wrong("sums")});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->stage(), v1::STAGE_VALIDATE);
  EXPECT_EQ(failure->check(), v1::CHECK_TOLERANCE);
  EXPECT_EQ(failure->size(), "medium");
  EXPECT_EQ(failure->message(),
            "out[1,1,3] is -1.5, expected 2.75; 6 of 24 elements are off (25 %), max 4.25 (limit 0.01), mean 0.5, "
            "relative 0.75 (limit 0.001)");
}

TEST(JudgeErrors, NamesTheTensorWhereNoElementIsWrongByItself) {
  v1::OutputError error = Right();
  error.set_relative(0.5);
  ASSERT_TRUE(Judge({error}).has_value());
  EXPECT_THAT(Judge({error})->message(), HasSubstr("out: 0 of 24 elements are off (0 %)"));
}

TEST(Strain, IsWithoutLimitWhereErrorAndNormAreInfinite) {
  CheckedCall call;
  *call.check.add_errors() = Right();
  EXPECT_NEAR(Strain(Plan(), call, 0), 0.9, 1e-9);
  call.check.mutable_errors(0)->set_relative(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Strain(Plan(), call, 0), INFINITY);
}

}  // namespace
}  // namespace pawl
