#include "profiles/roofline.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

// Round numbers: 50 TFLOP/s, 400 on tensor cores, 4,000 GB/s DRAM, 8,000 GB/s L2, 50 MB of it.
GpuSpec Gpu() {
  GpuSpec gpu;
  gpu.fp32_tflops = 50;
  gpu.fp16_tensor_tflops = 400;
  gpu.dram_gb_s = 4000;
  gpu.l2_gb_s = 8000;
  gpu.info.set_l2_bytes(50'000'000);
  return gpu;
}

// Reads one fp32 tensor of so many bytes and writes another.
v1::Plan Copy(double bytes_each) {
  v1::Plan plan;
  for (v1::TensorRole role : {v1::TENSOR_ROLE_INPUT, v1::TENSOR_ROLE_OUTPUT}) {
    v1::PlanTensor* tensor = plan.add_tensors();
    tensor->set_role(role);
    tensor->set_type(v1::DATA_TYPE_F32);
    tensor->set_elements(static_cast<int64_t>(bytes_each / 4));
  }
  plan.set_bytes(2 * bytes_each);
  return plan;
}

TEST(Roofline, ChargesAWarmSmallWorkingSetToTheL2) {
  EXPECT_DOUBLE_EQ(RooflineFloorUs(Copy(4e6), Gpu(), false, v1::TIMING_MODE_WARM), 1);
}

TEST(Roofline, ChargesColdReadsToTheDram) {
  // 20 MB in at 4,000 GB/s; the 20 MB out may stay in the L2.
  EXPECT_DOUBLE_EQ(RooflineFloorUs(Copy(20e6), Gpu(), false, v1::TIMING_MODE_COLD), 5);
}

TEST(Roofline, ChargesALargeWorkingSetToTheDramButForOneL2) {
  EXPECT_DOUBLE_EQ(RooflineFloorUs(Copy(400e6), Gpu(), false, v1::TIMING_MODE_WARM), (800e6 - 50e6) / 4e9 * 1e3);
}

TEST(Roofline, TakesTheRateOfTheUnitThatDoesTheWork) {
  v1::Plan plan;
  plan.set_flops(4e9);
  EXPECT_DOUBLE_EQ(RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_WARM), 80);
  EXPECT_DOUBLE_EQ(RooflineFloorUs(plan, Gpu(), true, v1::TIMING_MODE_WARM), 10);
}

TEST(Roofline, IsZeroWhenTheWorkIsUnknown) {
  v1::Plan plan = Copy(4e6);
  plan.set_bytes(0);
  EXPECT_EQ(RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_COLD), 0);
}

TEST(Roofline, LetsNarrowTypesComputeFaster) {
  v1::Plan plan = Copy(4);
  plan.set_bytes(0);
  plan.set_flops(1e12);
  const double floor = RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_WARM);
  ASSERT_GT(floor, 0);
  plan.mutable_tensors(0)->set_type(v1::DATA_TYPE_F8E4M3);
  EXPECT_DOUBLE_EQ(RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_WARM), floor / 2);
  plan.mutable_tensors(0)->set_type(v1::DATA_TYPE_U4);
  EXPECT_DOUBLE_EQ(RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_WARM), floor / 4);
}

TEST(Roofline, IgnoresScratchInTheWorkingSet) {
  v1::Plan plan = Copy(4e6);
  v1::PlanTensor* scratch = plan.add_tensors();
  scratch->set_role(v1::TENSOR_ROLE_SCRATCH);
  scratch->set_type(v1::DATA_TYPE_F32);
  scratch->set_elements(1'000'000'000);
  EXPECT_DOUBLE_EQ(RooflineFloorUs(plan, Gpu(), false, v1::TIMING_MODE_WARM), 1);
}

}  // namespace
}  // namespace pawl
