#include "worker/process/host_fault.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

TEST(RunnerFault, BlamesTheGpuForWhatAHealthyOneDoesNotSay) {
  EXPECT_TRUE(
      BlamesGpu(RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE (214): uncorrectable ECC error, in cuCtxSynchronize")));
  EXPECT_TRUE(BlamesGpu(RunnerFault("the runner could not open cuda:0: CUDA_ERROR_NO_DEVICE (100): no device")));
  EXPECT_TRUE(BlamesGpu(RunnerFault("CUDA_ERROR_UNKNOWN (999): unknown error, in cuInit(0)")));
}

TEST(RunnerFault, DoesNotBlameItForTheRestOfTheMachine) {
  EXPECT_FALSE(BlamesGpu(RunnerFault("CUDA_ERROR_INSUFFICIENT_DRIVER (35): too old: upgrade")));
  EXPECT_FALSE(BlamesGpu(RunnerFault("libcuda.so.1 can't be loaded (no such file)")));
  EXPECT_FALSE(BlamesGpu(RunnerFault("(214) without a name")));
  EXPECT_FALSE(BlamesGpu(RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE")));
  EXPECT_FALSE(BlamesGpu(absl::InternalError("CUDA_ERROR_ECC_UNCORRECTABLE (214): as a tool's output says")));
  EXPECT_FALSE(BlamesGpu(absl::OkStatus()));
}

TEST(HostFaultOf, CarriesMessageAndBlame) {
  const v1::HostFault fault = HostFaultOf(RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE (214): \xff"));
  EXPECT_EQ(fault.message(), "CUDA_ERROR_ECC_UNCORRECTABLE (214): ?");
  EXPECT_TRUE(fault.gpu());
  EXPECT_FALSE(HostFaultOf(absl::UnavailableError("no disk")).gpu());
}

}  // namespace
}  // namespace pawl
