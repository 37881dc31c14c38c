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

std::string GoldenCubin(const std::string& name = "parameters") {
  std::ifstream file(std::string(getenv("PAWL_SOURCE_DIR")) + "/tests/worker/golden/" + name + ".cubin",
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

// A plan whose tensor of `elements` floats is what the variable holds.
v1::Plan SymbolPlan(const std::string& name, int64_t elements) {
  v1::Plan plan;
  plan.set_size("main");
  v1::PlanTensor& tensor = *plan.add_tensors();
  tensor.set_name("taps");
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.set_elements(elements);
  plan.add_symbols()->set_name(name);
  return plan;
}

TEST(CheckArguments, WantsEverySymbolWithTheBytesOfItsTensor) {
  const std::string cubin = GoldenCubin("symbols");
  EXPECT_FALSE(CheckArguments(SymbolPlan("club::weights", 8), cubin).has_value());
  std::optional<v1::Failure> failure = CheckArguments(SymbolPlan("club::weights", 4), cubin);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->message(),
            "[[symbol]] club::weights: the variable has 32 bytes, the tensor taps 16 at size main. Give them the same "
            "type and shape");
  failure = CheckArguments(SymbolPlan("weights", 8), cubin);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->message(), HasSubstr("[[symbol]] weights: the code has no such variable; it has "));
  EXPECT_THAT(failure->message(), HasSubstr("club::weights"));
}

TEST(CheckArguments, LeavesToTheDriverWhatItCannotRead) {
  EXPECT_FALSE(CheckArguments(FivePlan(), "no cubin").has_value());
  v1::Plan plan = FivePlan();
  plan.mutable_launches(0)->set_entry("elsewhere");
  EXPECT_FALSE(CheckArguments(plan, GoldenCubin()).has_value());
}

v1::Plan StructsPlan() {
  v1::PlanStruct mixed, pair;
  mixed.add_fields()->set_raw(std::string(1, 'x'));
  mixed.add_fields()->set_tensor(0);
  mixed.add_fields()->set_i32(1);
  mixed.add_fields()->set_f64(1);
  mixed.add_fields()->set_raw(std::string(2, 'x'));
  for (int i = 0; i < 2; ++i) pair.add_fields()->set_tensor(i);
  v1::Plan plan;
  plan.set_size("main");
  v1::PlanLaunch& launch = *plan.add_launches();
  launch.set_entry("structs");
  *launch.add_arguments()->mutable_fields() = mixed;
  *launch.add_arguments()->mutable_fields() = mixed;
  launch.mutable_arguments(1)->mutable_fields()->set_in_memory(true);
  *launch.add_arguments()->mutable_fields() = pair;
  launch.add_arguments()->set_raw(std::string(1, 'x'));
  launch.add_arguments()->set_raw(std::string(8, 'x'));
  launch.add_arguments()->set_index(true);
  return plan;
}

TEST(CheckArguments, KnowsStructsAndScalarsOfEveryWidth) {
  const std::string cubin = GoldenCubin("structs");
  const std::optional<v1::Failure> fine = CheckArguments(StructsPlan(), cubin);
  EXPECT_FALSE(fine.has_value()) << fine->message();
  v1::Plan plan = StructsPlan();
  plan.mutable_launches(0)->mutable_arguments(0)->mutable_fields()->mutable_fields()->RemoveLast();
  const std::optional<v1::Failure> shorter = CheckArguments(plan, cubin);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_THAT(shorter->message(),
              HasSubstr("are 6 of 40,8,16,1,8,4 bytes; the launch passes 6 of 32,8,16,1,8,4 bytes"));
  plan = StructsPlan();
  plan.mutable_launches(0)->mutable_arguments(3)->set_i32(1);
  EXPECT_TRUE(CheckArguments(plan, cubin).has_value());
}

std::vector<v1::Size> SomeSizes(const std::vector<int>& values) {
  std::vector<v1::Size> sizes;
  for (const int value : values) {
    sizes.emplace_back().set_name("size " + std::to_string(value));
    (*sizes.back().mutable_values())["N"] = value;
  }
  return sizes;
}

// A bundle whose weights are packed before the calls.
v1::Bundle BundleWithSetup() {
  v1::Bundle bundle = CopyBundle();
  v1::Tensor& weights = *bundle.add_tensors();
  weights.set_name("weights");
  weights.set_type(v1::DATA_TYPE_F32);
  weights.add_shape("N");
  weights.set_role(v1::TENSOR_ROLE_INPUT);
  weights.set_fill(v1::FILL_NORMAL);
  weights.set_low("-1");
  weights.set_high("1");
  weights.set_is_static(true);
  bundle.mutable_setup()->mutable_source()->set_path("setup.cu");
  bundle.mutable_setup()->mutable_source()->set_text("extern \"C\" __global__ void pack(float* weights) {}\n");
  v1::Launch& launch = *bundle.mutable_setup()->add_launches();
  launch.set_entry("pack");
  launch.add_grid("1");
  launch.add_block("32");
  launch.add_arguments("weights");
  return bundle;
}

TEST(BuildVariant, BuildsTheSetupOnceForAllSizes) {
  ScriptedGpu gpu;
  const v1::Bundle bundle = BundleWithSetup();
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({100, 200}), gpu.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_FALSE(built->failure.has_value()) << built->failure->message();
  ASSERT_NE(built->sizes[0].setup_cubin, nullptr);
  EXPECT_EQ(built->sizes[0].setup_cubin, built->sizes[1].setup_cubin);
  EXPECT_NE(built->sizes[0].setup_module, built->sizes[0].module);
  EXPECT_THAT(*built->sizes[0].setup_cubin, HasSubstr("setup.cu"));
}

TEST(BuildVariant, SaysThatTheSetupDoesNotBuild) {
  ScriptedGpu gpu;
  const v1::Bundle bundle = BundleWithSetup();
  gpu.builds["setup.cu"].mutable_failure()->set_message("setup.cu(1): error");
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({100}), gpu.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(built->failure.has_value());
  EXPECT_EQ(built->failure->message(), "the setup does not build: setup.cu(1): error");
}

TEST(BuildVariant, RefusesAnEntryThatIsNamedLikeAKernelOfOurs) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_launches(0)->set_entry("my_pawl_fill");
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({100}), gpu.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(built->failure.has_value());
  EXPECT_THAT(built->failure->message(), HasSubstr("my_pawl_fill has pawl_fill in its name"));
}

TEST(BuildVariant, CarriesTheFilesOfInputs) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_tensors(0)->set_fill(v1::FILL_FILE);
  bundle.mutable_tensors(0)->clear_low();
  bundle.mutable_tensors(0)->clear_high();
  bundle.mutable_tensors(0)->set_file("data.bin");
  v1::DataFile& file = *bundle.add_data_files();
  file.set_path("data.bin");
  file.set_data(std::string(100 * sizeof(float), 'x'));
  const auto build = [&] {
    return BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({100}), gpu.gpu());
  };
  const absl::StatusOr<BuiltVariant> built = build(), again = build();
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_FALSE(built->failure.has_value()) << built->failure->message();
  ASSERT_EQ(built->sizes[0].files.size(), 1u);
  EXPECT_EQ(*built->sizes[0].files[0].content, file.data());
  EXPECT_EQ(built->sizes[0].files[0].id, built->sizes[0].plan.tensors(0).file());
  EXPECT_EQ(built->sizes[0].files[0].content, again->sizes[0].files[0].content) << "it is in memory once";
  file.mutable_data()->back() = 'y';
  const absl::StatusOr<BuiltVariant> other = build();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(other->sizes[0].files[0].id, built->sizes[0].files[0].id);
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

TEST(BuildReference, SeesItsOwnFilesAndSaysWhichKeyNamesThem) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.add_files()->set_path("include/tile.cuh");
  gpu.builds["reference.cu"].mutable_failure()->set_message(
      "reference.cu(1): error: could not open source file \"tile.cuh\"; `files` in kernel.toml must name the files of "
      "the bundle that are included");
  const absl::Status status =
      BuildReference(gpu.builder(), bundle, SomeSizes({8})[0], gpu.gpu(), &gpu.references()).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"tile.cuh\"; `files` of [reference] must name the files of the bundle that are included"));
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

TEST(BuildVariant, NamesTheFirstSizeThatDoesNotCompile) {
  ScriptedGpu gpu;
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_source()->set_text("SIZE_N");
  gpu.builds["SIZE_N=8"].mutable_failure()->set_message("no");
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({8, 16, 24}), gpu.gpu());
  ASSERT_TRUE(built.ok() && built->failure.has_value());
  EXPECT_EQ(built->failure->size(), "size 8");
  gpu.builds.clear();
  gpu.builds["SIZE_N=24"].mutable_failure()->set_message("no");
  built = BuildVariant(gpu.builder(), bundle, StartVariant(bundle), SomeSizes({8, 16, 24}), gpu.gpu());
  ASSERT_TRUE(built.ok() && built->failure.has_value());
  EXPECT_EQ(built->failure->size(), "size 24");
}

}  // namespace
}  // namespace pawl
