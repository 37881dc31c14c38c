#include "worker/device/sanitizer.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

TEST(FirstSanitizerError, FindsNoneInACleanRun) {
  EXPECT_EQ(FirstSanitizerError(""), std::nullopt);
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), std::nullopt);
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n"
                                "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"),
            std::nullopt);
}

TEST(FirstSanitizerError, GivesTheFirstAndWhereItHappenedWithoutTheirDecoration) {
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n"
                                "========= Invalid __global__ write of size 4 bytes\n"
                                "=========     at scale_rows+0xdd0\n"
                                "=========     by thread (2,0,0) in block (0,0,0)\n"
                                "=========\n"
                                "========= Invalid __global__ read of size 8 bytes\n"
                                "========= ERROR SUMMARY: 2 errors\n"),
            "Invalid __global__ write of size 4 bytes at scale_rows+0xdd0");
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n"
                                "========= Error: Race reported between Write access at softmax+0x4d0\n"
                                "=========     and Read access at softmax+0x5a0 [16 hazards]\n"
                                "=========\n"
                                "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"),
            "Error: Race reported between Write access at softmax+0x4d0 and Read access at softmax+0x5a0 [16 hazards]");
}

TEST(FirstSanitizerError, FallsBackToASummaryOfErrorsThatWereNotPrinted) {
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 10 errors\n"),
            "ERROR SUMMARY: 10 errors");
}

TEST(FirstSanitizerError, DoesNotReadWhatTheCandidatePrints) {
  EXPECT_EQ(FirstSanitizerError("Invalid __global__ write of size 4 bytes\n"
                                "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"),
            std::nullopt);
}

// The runner failed and the tool found nothing: the machine's fault, not the candidate's.
TEST(FirstSanitizerError, TakesTheEndOfTheRunnerForNoFinding) {
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n"
                                "pawl-runner: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected\n"
                                "========= Error: process didn't terminate successfully\n"
                                "========= Target application returned an error\n"
                                "========= ERROR SUMMARY: 0 errors\n"),
            std::nullopt);
  EXPECT_EQ(FirstSanitizerError("========= COMPUTE-SANITIZER\n"
                                "========= Error: Target application terminated before first instrumented API call\n"
                                "========= Tracking kernels launched by child processes requires the "
                                "--target-processes all option.\n"),
            std::nullopt);
}

TEST(CalledItems, BelievesTheRunnersLastLineOnly) {
  EXPECT_EQ(CalledItems("========= COMPUTE-SANITIZER\n"), 0u) << "it did not come to its end";
  EXPECT_EQ(CalledItems("pawl-runner called items: 9\n========= COMPUTE-SANITIZER\npawl-runner called items: 2\n"), 2u)
      << "a candidate can print, but not after the last call";
  EXPECT_EQ(CalledItems("pawl-runner called items: \n"), 0u);
}

}  // namespace
}  // namespace pawl
