#include "worker/trial/roofline_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl {
namespace {

using ::testing::HasSubstr;

class RooflineCheck : public testing::Test {
 protected:
  RooflineCheck() {
    plan_.set_size("main");
    plan_.set_bytes(1e9);  // far beyond every L2
    v1::PlanTensor* tensor = plan_.add_tensors();
    tensor->set_type(v1::DATA_TYPE_F32);
    tensor->set_role(v1::TENSOR_ROLE_INPUT);
    tensor->set_elements(250'000'000);
  }
  v1::Bundle bundle_;
  v1::Plan plan_;
};

TEST_F(RooflineCheck, RejectsATimeThatTheGpuCannotReach) {
  const std::optional<v1::Failure> warm = BelowRoofline("NVIDIA H200", bundle_, plan_, 1, 1000);
  ASSERT_TRUE(warm.has_value());
  EXPECT_EQ(warm->check(), v1::CHECK_ROOFLINE);
  EXPECT_EQ(warm->stage(), v1::STAGE_MEASURE);
  EXPECT_EQ(warm->size(), "main");
  EXPECT_THAT(warm->message(), HasSubstr("1.000 us warm is below the roofline floor"));
  const std::optional<v1::Failure> cold = BelowRoofline("NVIDIA H200", bundle_, plan_, 1000, 1);
  ASSERT_TRUE(cold.has_value());
  EXPECT_THAT(cold->message(), HasSubstr("1.000 us cold"));
}

TEST_F(RooflineCheck, AcceptsATimeAboveIt) {
  EXPECT_FALSE(BelowRoofline("NVIDIA H200", bundle_, plan_, 1000, 1000).has_value());
}

TEST_F(RooflineCheck, SaysNothingOfAGpuItDoesNotKnow) {
  EXPECT_FALSE(BelowRoofline("Some GPU", bundle_, plan_, 0.001, 0.001).has_value());
}

}  // namespace
}  // namespace pawl
