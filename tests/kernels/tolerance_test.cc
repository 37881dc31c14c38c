#include "kernels/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

void AddTensor(v1::Plan& plan, const std::string& name, v1::TensorRole role, v1::DataType type,
               const std::vector<int64_t>& shape) {
  v1::PlanTensor& tensor = *plan.add_tensors();
  tensor.set_name(name);
  tensor.set_role(role);
  tensor.set_type(type);
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    tensor.add_shape(extent);
    elements *= extent;
  }
  tensor.set_elements(elements);
}

// Rows of a matrix to an output of one type.
v1::Plan RowsTo(v1::DataType type, double relative) {
  v1::Plan plan;
  AddTensor(plan, "in", v1::TENSOR_ROLE_INPUT, type, {1024, 4096});
  AddTensor(plan, "out", v1::TENSOR_ROLE_OUTPUT, type, {1024, 4096});
  plan.mutable_tolerance()->set_absolute(0.01);
  plan.mutable_tolerance()->set_relative(relative);
  return plan;
}

TEST(ToleranceTest, KnowsHowLongASumMayBe) {
  v1::Plan plan = RowsTo(v1::DATA_TYPE_F32, 1e-6);
  EXPECT_EQ(ReductionLength(plan, plan.tensors(1)), 4096) << "rows do not mix";
  AddTensor(plan, "sums", v1::TENSOR_ROLE_OUTPUT, v1::DATA_TYPE_F32, {1024});
  EXPECT_EQ(ReductionLength(plan, plan.tensors(2)), 4096);
  AddTensor(plan, "total", v1::TENSOR_ROLE_OUTPUT, v1::DATA_TYPE_F32, {1});
  EXPECT_EQ(ReductionLength(plan, plan.tensors(3)), 1024 * 4096);
}

TEST(ToleranceTest, KnowsWhatRoundingAloneDoesToSums) {
  v1::Plan plan = RowsTo(v1::DATA_TYPE_F32, 1e-7);
  const double f32 = RoundingOfSums(plan, plan.tensors(1));
  EXPECT_GT(f32, 64 * UnitRoundoff(v1::DATA_TYPE_F32)) << "of 4096 terms that cancel";
  EXPECT_LT(f32, 1e-4) << "tf32 and half precision are no rounding";
  plan = RowsTo(v1::DATA_TYPE_F64, 1e-12);
  EXPECT_LT(RoundingOfSums(plan, plan.tensors(1)), 1e-12);
}

TEST(ToleranceTest, RefusesOneThatHidesMissingWorkAndSaysWhatWouldDo) {
  for (const v1::DataType type : {v1::DATA_TYPE_F16, v1::DATA_TYPE_BF16, v1::DATA_TYPE_F32, v1::DATA_TYPE_F64}) {
    const v1::Plan plan = RowsTo(type, 0.6);
    EXPECT_THAT(UnjustifiedTolerance({&plan}).value_or(""), HasSubstr("relative = ")) << v1::DataType_Name(type);
  }
  const v1::Plan plan = RowsTo(v1::DATA_TYPE_F16, 0.6);
  EXPECT_EQ(*UnjustifiedTolerance({&plan}),
            "the relative tolerance of out is 0.6, far above what its type and sums of up to 4096 values justify; "
            "relative = 0.008 would do");
}

TEST(ToleranceTest, AllowsWhatHonestKernelsNeed) {
  for (const auto& [type, relative] :
       {std::pair{v1::DATA_TYPE_F16, 1e-3}, std::pair{v1::DATA_TYPE_F16, 5e-3}, std::pair{v1::DATA_TYPE_BF16, 1e-2},
        std::pair{v1::DATA_TYPE_F32, 1e-6}, std::pair{v1::DATA_TYPE_F32, 1e-3}, std::pair{v1::DATA_TYPE_F64, 1e-12}}) {
    const v1::Plan plan = RowsTo(type, relative);
    EXPECT_EQ(UnjustifiedTolerance({&plan}), std::nullopt) << v1::DataType_Name(type) << " " << relative;
  }
}

TEST(ToleranceTest, TakesTheSizeThatJustifiesMost) {
  v1::Plan small = RowsTo(v1::DATA_TYPE_F32, 0.003), large = small;
  large.mutable_tensors(0)->set_elements(int64_t{1} << 32);
  EXPECT_TRUE(UnjustifiedTolerance({&small}).has_value());
  EXPECT_FALSE(UnjustifiedTolerance({&small, &large}).has_value());
}

TEST(ToleranceTest, JudgesNoOutputThatIsExact) {
  v1::Plan plan = RowsTo(v1::DATA_TYPE_F32, 0.6);
  plan.mutable_tensors(1)->mutable_tolerance()->set_exact(true);
  EXPECT_EQ(UnjustifiedTolerance({&plan}), std::nullopt);
}

TEST(ToleranceTest, AllowsIntegersTheRoundingOfFloatsAndNoMore) {
  v1::Plan plan = RowsTo(v1::DATA_TYPE_I32, 0.1);
  EXPECT_TRUE(UnjustifiedTolerance({&plan}).has_value());
  plan = RowsTo(v1::DATA_TYPE_I32, 0.05);
  EXPECT_FALSE(UnjustifiedTolerance({&plan}).has_value());
}

TEST(ToleranceTest, HoldsOutputsOf8BitsToMoreThanZerosWould) {
  for (const v1::DataType type : {v1::DATA_TYPE_F8E4M3, v1::DATA_TYPE_F8E5M2}) {
    v1::Plan plan = RowsTo(type, 0.3);
    EXPECT_TRUE(UnjustifiedTolerance({&plan}).has_value());
    plan = RowsTo(type, 0.2);
    EXPECT_FALSE(UnjustifiedTolerance({&plan}).has_value());
    // Inputs of 8 bits say little about an output that is wider.
    plan = RowsTo(v1::DATA_TYPE_F16, 0.1);
    plan.mutable_tensors(0)->set_type(type);
    EXPECT_TRUE(UnjustifiedTolerance({&plan}).has_value());
  }
}

TEST(ToleranceTest, JudgesWhatIsChangedInPlace) {
  v1::Plan plan = RowsTo(v1::DATA_TYPE_F32, 0.6);
  plan.mutable_tensors()->DeleteSubrange(0, 1);
  plan.mutable_tensors(0)->set_role(v1::TENSOR_ROLE_INOUT);
  EXPECT_TRUE(UnjustifiedTolerance({&plan}).has_value());
}

TEST(ToleranceTest, ScalesTheAbsoluteLimitWithTheOutput) {
  const v1::Plan plan = RowsTo(v1::DATA_TYPE_F16, 1e-3);
  EXPECT_GT(MostAbsolute(plan, plan.tensors(1), 1), 0.01);
  EXPECT_LT(MostAbsolute(plan, plan.tensors(1), 1e-4), 0.01);
}

}  // namespace
}  // namespace pawl
