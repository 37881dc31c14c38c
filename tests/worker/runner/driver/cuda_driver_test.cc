#include "worker/runner/driver/cuda_driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl {
namespace {

using ::testing::HasSubstr;

absl::StatusCode CodeOf(CUresult result) { return CudaStatus(result, "LaunchKernel").code(); }
std::string Message(CUresult result) { return std::string(CudaStatus(result, "LaunchKernel").message()); }

TEST(CudaStatus, IsOkForSuccess) { EXPECT_TRUE(CudaStatus(0, "Init").ok()); }

TEST(CudaStatus, NamesTheCodeAndTheCall) {
  EXPECT_THAT(Message(700), HasSubstr("(700)"));
  EXPECT_THAT(Message(700), HasSubstr("in cuLaunchKernel"));
}

TEST(CudaStatus, BlamesTheCandidateForALostContext) {
  for (const CUresult result : {700, 710, 714, 715, 716, 717, 718, 719, 721}) {
    EXPECT_EQ(CodeOf(result), absl::StatusCode::kAborted) << result;
  }
}

TEST(CudaStatus, KnowsWhatTheDriverRefused) {
  for (const CUresult result : {1, 200, 209, 218, 225, 302, 303, 500, 701, 720, 811, 812, 912}) {
    EXPECT_EQ(CodeOf(result), absl::StatusCode::kInvalidArgument) << result;
  }
  EXPECT_EQ(CodeOf(2), absl::StatusCode::kResourceExhausted);
}

TEST(CudaStatus, AdvisesWhereTheMachineIsAtFault) {
  for (const CUresult result : {35, 222, 803}) {
    EXPECT_EQ(CodeOf(result), absl::StatusCode::kInternal) << result;
    EXPECT_THAT(Message(result), HasSubstr("upgrade the driver")) << result;
  }
  EXPECT_EQ(CodeOf(214), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(214), HasSubstr("take this GPU out of service"));
}

TEST(CudaStatus, NeverBlamesTheCandidateForACodeItDoesNotKnow) {
  for (const CUresult result : {46, 100, 101, 999, 123456}) {
    EXPECT_EQ(CodeOf(result), absl::StatusCode::kInternal) << result;
  }
}

TEST(LoadCudaDriver, AdvisesToInstallTheDriverWhereThereIsNone) {
  if (void* library = dlopen("libcuda.so.1", RTLD_LAZY)) {
    dlclose(library);
    GTEST_SKIP() << "this machine has a driver";
  }
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = LoadCudaDriver().status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("libcuda.so.1"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("install the NVIDIA driver"));
  }
}

}  // namespace
}  // namespace pawl
