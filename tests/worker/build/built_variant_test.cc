#include "worker/build/built_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

std::string GoldenCubin() {
  std::ifstream file(std::string(getenv("PAWL_SOURCE_DIR")) + "/tests/worker/golden/parameters.cubin",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A launch of `five`, which takes three pointers, an int and a float.
v1::Plan FivePlan() {
  v1::Plan plan;
  plan.set_size("main");
  v1::PlanLaunch& launch = *plan.add_launches();
  launch.set_entry("five");
  for (int i = 0; i < 3; ++i) launch.add_arguments()->set_tensor(i);
  launch.add_arguments()->set_i32(7);
  launch.add_arguments()->set_f32(0.5f);
  return plan;
}

TEST(CheckArguments, AcceptsWhatTheEntryTakes) { EXPECT_FALSE(CheckArguments(FivePlan(), GoldenCubin()).has_value()); }

TEST(CheckArguments, FindsAMissingArgument) {
  v1::Plan plan = FivePlan();
  plan.mutable_launches(0)->mutable_arguments()->RemoveLast();
  const std::optional<v1::Failure> failure = CheckArguments(plan, GoldenCubin());
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->check(), v1::CHECK_ARGUMENTS);
  EXPECT_EQ(failure->size(), "main");
  EXPECT_THAT(failure->message(), HasSubstr("the parameters of five are 5 of 8,8,8,4,4 bytes; the launch passes 4 of "
                                            "8,8,8,4 bytes"));
}

TEST(CheckArguments, FindsASurplusOneAndOneOfAnotherSize) {
  v1::Plan plan = FivePlan();
  plan.mutable_launches(0)->add_arguments()->set_i32(1);
  EXPECT_TRUE(CheckArguments(plan, GoldenCubin()).has_value());
  plan = FivePlan();
  plan.mutable_launches(0)->mutable_arguments(4)->set_f64(0.5);
  EXPECT_TRUE(CheckArguments(plan, GoldenCubin()).has_value());
  plan.mutable_launches(0)->set_entry("none");
  EXPECT_THAT(CheckArguments(plan, GoldenCubin())->message(), HasSubstr("the parameters of none are none"));
}

TEST(CheckArguments, LeavesToTheDriverWhatItCannotRead) {
  EXPECT_FALSE(CheckArguments(FivePlan(), "no cubin").has_value());
  v1::Plan plan = FivePlan();
  plan.mutable_launches(0)->set_entry("elsewhere");
  EXPECT_FALSE(CheckArguments(plan, GoldenCubin()).has_value());
}

std::vector<v1::Size> SomeSizes(const std::vector<int>& values) {
  std::vector<v1::Size> sizes;
  for (const int value : values) {
    sizes.emplace_back().set_name("size " + std::to_string(value));
    (*sizes.back().mutable_values())["N"] = value;
  }
  return sizes;
}

TEST(BuildVariant, FailsWhereTheArgumentsDoNotFit) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_launches(0)->set_entry("five");
  gpu.builds["copy.cu"].set_cubin(GoldenCubin());
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({8}), gpu.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(built->failure.has_value());
  EXPECT_EQ(built->failure->check(), v1::CHECK_ARGUMENTS);
}

TEST(BuildReference, IsTheBundlesFaultWhereTheArgumentsDoNotFit) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_reference()->mutable_launches(0)->set_entry("five");
  gpu.builds["reference.cu"].set_cubin(GoldenCubin());
  const absl::Status status =
      BuildReference(gpu.builder(), bundle, SomeSizes({8})[0], gpu.gpu(), &gpu.references()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the launch passes 3 of 8,8,4 bytes"));
}

TEST(BuildVariant, CompilesOnceForEverySourceThatTheCompilerSees) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_source()->set_text("#if TILE == 64\nint n = SIZE_N;\n#endif\n");
  const std::vector<v1::Size> sizes = SomeSizes({8, 16, 24, 32});
  v1::Variant variant = StartVariant(bundle);
  ASSERT_TRUE(BuildVariant(gpu.builder(), bundle, variant, sizes, gpu.gpu()).ok());
  EXPECT_EQ(gpu.compiled().size(), 1u) << "TILE is 32: no size matters";
  (*variant.mutable_values())["TILE"] = 64;
  const absl::StatusOr<BuiltVariant> built = BuildVariant(gpu.builder(), bundle, variant, sizes, gpu.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(gpu.compiled().size(), 5u);
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_THAT(*built->sizes[i].cubin, HasSubstr("-DSIZE_N=" + std::to_string(8 * (i + 1))));
  }
}

TEST(BuildVariant, CompilesNoOtherSizeWhereTheFirstDoesNotCompile) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_source()->set_text("SIZE_N");
  gpu.builds["SIZE_N=8"].mutable_failure()->set_message("no");
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({8, 16, 24}), gpu.gpu());
  ASSERT_TRUE(built.ok() && built->failure.has_value());
  EXPECT_EQ(built->failure->size(), "size 8");
  EXPECT_EQ(gpu.compiled().size(), 1u);
  gpu.builds.clear();
  gpu.builds["SIZE_N=24"].mutable_failure()->set_message("no");
  built = BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({8, 16, 24}), gpu.gpu());
  ASSERT_TRUE(built.ok() && built->failure.has_value());
  EXPECT_EQ(built->failure->size(), "size 24");
}

}  // namespace
}  // namespace pawl
