#include "worker/check/start_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/trial/scripted_gpu.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StartVariantRun, ValidatesTwentyTimesAtEverySizeWithASelfTestOfTheTolerance) {
  ScriptedGpu gpu;
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, CopyBundle());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->failure.has_value());
  EXPECT_THAT(run->warnings, IsEmpty()) << "an exact copy has no error to compare the tolerance with";
  EXPECT_THAT(gpu.log, ElementsAre("call hidden x20", "check hidden self-test", "call hidden x20",
                                   "check hidden self-test", "call small x20", "check small self-test", "call main x20",
                                   "check main self-test", "reference call small x1", "reference check small"));
  EXPECT_EQ(run->built.sizes.size(), 4u);
}

TEST(StartVariantRun, RunsNothingThatDoesNotBuild) {
  ScriptedGpu gpu;
  gpu.builds["copy.cu"].mutable_failure()->set_check(v1::CHECK_COMPILE);
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, CopyBundle());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->failure->check(), v1::CHECK_COMPILE);
  EXPECT_THAT(gpu.log, IsEmpty());
}

TEST(StartVariantRun, FailsWhereTheToleranceAcceptsWrongOutputs) {
  ScriptedGpu gpu;
  gpu.lenient = {"zeros"};
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, CopyBundle());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->failure->check(), v1::CHECK_LENIENT);
}

TEST(StartVariantRun, WarnsOfAToleranceThatIsLooseAtTheGoalsSize) {
  ScriptedGpu gpu;
  gpu.errors["check main self-test"].set_max_absolute(0.001);
  gpu.errors["check main self-test"].set_relative(0.001);
  gpu.errors["check small self-test"].set_max_absolute(0.009);
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, CopyBundle());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->warnings, ElementsAre(HasSubstr("more than 4 times the start variant's error in out")));
}

TEST(StartVariantRun, WarnsOfAReferenceThatIgnoresAnInput) {
  ScriptedGpu gpu;
  gpu.blind_reference = true;
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, CopyBundle());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->failure.has_value());
  EXPECT_THAT(run->warnings, ElementsAre(HasSubstr("do not depend on the input in: a variant that ignores it")));
}

TEST(StartVariantRun, IsTheBundlesFaultWhereTheReferenceDoesNotRun) {
  ScriptedGpu gpu;
  gpu.failures["check small self-test"].set_check(v1::CHECK_FAULT);
  EXPECT_TRUE(absl::IsInvalidArgument(RunStartVariant(gpu, CopyBundle()).status()));
}

TEST(StartVariantRun, IsTheMachinesFaultWhereTheRunnerCannotStart) {
  ScriptedGpu gpu;
  gpu.faults["load"] = absl::InternalError("no GPU");
  EXPECT_TRUE(absl::IsInternal(RunStartVariant(gpu, CopyBundle()).status()));
}

TEST(SlowestSize, IsTheOneWhoseCallTakesLongest) {
  ScriptedGpu gpu;
  const v1::Bundle bundle = CopyBundle();
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, bundle);
  ASSERT_TRUE(run.ok()) << run.status();
  const absl::StatusOr<SlowestSize> slowest = TimeSlowestSize(gpu, bundle, run->built);
  ASSERT_TRUE(slowest.ok()) << slowest.status();
  EXPECT_EQ(slowest->size, "main");
  EXPECT_GT(slowest->microseconds, 0);
}

TEST(SlowestSize, TellsOfMoreWorkThanTheGpuCanDo) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, bundle);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(TimeSlowestSize(gpu, bundle, run->built)->beyond, "");
  bundle.set_work_bytes("1e15");
  const absl::StatusOr<StartVariantRun> heavy = RunStartVariant(gpu, bundle);
  ASSERT_TRUE(heavy.ok()) << heavy.status();
  EXPECT_THAT(TimeSlowestSize(gpu, bundle, heavy->built)->beyond,
              HasSubstr("[work] says more than this GPU can do: the start variant's "));
}

TEST(SlowestSize, SaysWhyItCannotBeTimed) {
  ScriptedGpu gpu;
  const v1::Bundle bundle = CopyBundle();
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(gpu, bundle);
  ASSERT_TRUE(run.ok()) << run.status();
  gpu.failures["compare small 2"].set_message("the kernel hangs");
  EXPECT_EQ(TimeSlowestSize(gpu, bundle, run->built).status().message(), "the kernel hangs");
}

}  // namespace
}  // namespace pawl
