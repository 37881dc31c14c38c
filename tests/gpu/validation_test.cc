// What validation accepts and refuses on a real GPU: the shipped bundles, and one kernel for each kind of inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/check/start_variant.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

v1::Bundle ReadShipped(const std::string& path) {
  BundleReading reading = ReadBundle(std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / path);
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  return reading.bundle;
}

TEST(GpuValidation, AcceptsTheShippedBundlesWithEveryDistribution) {
  PAWL_NEEDS_GPU();
  for (const char* path : {"kernels/attention", "kernels/gemm", "kernels/reduce_sum", "kernels/rmsnorm",
                           "kernels/softmax", "kernels/transpose", "docs/tutorial/layernorm"}) {
    for (int again = 0; again < 5; ++again) {
      const absl::StatusOr<StartVariantRun> run = RunStartVariant(SharedDevice()->cuda(), ReadShipped(path));
      ASSERT_TRUE(run.ok()) << path << ": " << run.status();
      EXPECT_FALSE(run->failure.has_value())
          << path << " at " << run->failure->size() << ": " << run->failure->message();
    }
  }
}

// Of 67 million values that are mostly small, one that is large may round the other way.
TEST(GpuValidation, AcceptsAnotherOrderOfSumsAtALargeSizeWithEveryDistribution) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = ReadShipped("kernels/rmsnorm");
  v1::Variant variant = StartVariant(bundle);
  (*variant.mutable_values())["VECTOR"] = 8;
  v1::Size size;
  size.set_name("beside main");
  (*size.mutable_values())["ROWS"] = (*size.mutable_values())["COLS"] = 8190;
  const absl::StatusOr<BuiltVariant> built = BuildVariant(device.builder(), bundle, variant, {size}, device.gpu());
  ASSERT_TRUE(built.ok() && !built->failure);
  ValidationOptions options;
  options.small = 1;
  options.inputs = DistributionsFor(bundle);
  for (int again = 0; again < 6; ++again) {
    const absl::StatusOr<Validation> validation = Validate(device, bundle, *built, options);
    ASSERT_TRUE(validation.ok()) << validation.status();
    EXPECT_FALSE(validation->failure.has_value()) << validation->failure->message();
  }
}

TEST(GpuValidation, RefusesATolerance) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  v1::Bundle bundle = ReadShipped("kernels/softmax");
  bundle.mutable_tolerance()->set_absolute(1);
  absl::StatusOr<StartVariantRun> run = RunStartVariant(device, bundle);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->failure.has_value());
  EXPECT_EQ(run->failure->check(), v1::CHECK_LENIENT);
  EXPECT_THAT(run->failure->message(), HasSubstr("would do"));
  // Of one value in a row, which every corruption but zeros and scaling leaves right.
  bundle = ReadShipped("kernels/softmax");
  bundle.mutable_sizes(0)->mutable_values()->at("COLS") = 1;
  run = RunStartVariant(device, bundle);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->failure.has_value()) << run->failure->message();
}

// Softmaxes that are right for what is timed.
std::string Softmax(const std::string& maximum, const std::string& condition) {
  return R"(
extern "C" __global__ void softmax(const float* in, float* out, int cols) {
  if (threadIdx.x != 0) return;
  in += (long long)blockIdx.x * cols, out += (long long)blockIdx.x * cols;
  float largest = in[0], sum = 0;
  for (int i = 0; i < cols; ++i) largest = fmaxf(largest, in[i]);
  const float first = in[0];
  const bool wrong = )" +
         condition + R"(;
  for (int i = 0; i < cols; ++i) sum += expf(in[i] - )" +
         maximum + R"();
  for (int i = 0; i < cols; ++i) out[i] = wrong ? 0.0f : expf(in[i] - )" +
         maximum + R"() / sum;
  (void)first;
}
)";
}

std::string FailureOf(const std::string& source) {
  CudaDevice& device = SharedDevice()->cuda();
  v1::Bundle bundle = ReadShipped("kernels/softmax");
  bundle.mutable_source()->set_text(source);
  bundle.mutable_sizes()->DeleteSubrange(1, 2);  // one thread a row: small sizes only
  bundle.mutable_goal()->set_size("tiny");
  const SizesToValidate sizes = AllSizes(bundle);
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), sizes.all, device.gpu());
  if (!built.ok() || built->failure) return "it does not build";
  ValidationOptions options;
  options.small = sizes.small;
  options.inputs = DistributionsFor(bundle);
  const absl::StatusOr<Validation> validation = Validate(device, bundle, *built, options);
  if (!validation.ok()) return std::string(validation.status().message());
  return validation->failure ? validation->failure->message() : "";
}

TEST(GpuValidation, CatchesAKernelThatFitsTheInputs) {
  PAWL_NEEDS_GPU();
  EXPECT_EQ(FailureOf(Softmax("largest", "false")), "");
  EXPECT_THAT(FailureOf(Softmax("0.0f", "false")), HasSubstr("with ")) << "without the maximum";
  EXPECT_THAT(FailureOf(Softmax("largest", "cols > 1 && in[1] == first && in[cols - 1] == first && first != 0")),
              AnyOf(HasSubstr("with inputs that are all equal"), HasSubstr("with inputs at the ends")));
  EXPECT_THAT(FailureOf(Softmax("largest", "largest == 0 && first == 0")),
              AnyOf(HasSubstr("with inputs of zeros"), HasSubstr("with inputs at the ends"),
                    HasSubstr("with denormal inputs")));
  EXPECT_THAT(FailureOf(Softmax("largest", "first != 0 && fabsf(first) < 1e-37f")), HasSubstr("with denormal inputs"));
  EXPECT_THAT(FailureOf(Softmax("largest",
                                "cols > 2 && in[0] < in[1] && in[1] < in[2] && in[cols - 2] < in[cols - 1] "
                                "&& in[cols / 2] < in[cols / 2 + 1] && largest > 100")),
              HasSubstr("with "));
}

}  // namespace
}  // namespace pawl
