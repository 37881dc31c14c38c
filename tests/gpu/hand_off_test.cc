// What `pawl best --output` writes, built and run on a GPU in the worker's sandbox: programs, PyTorch extensions,
// cubins.
#include "cli/handoff/hand_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/read/implementation.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/build/built_variant.h"

namespace pawl {
namespace {

// A variant of a bundle of the repository, handed over with its cubin, and what became of its forms.
void ExpectVerified(const std::string& path, const std::map<std::string, int32_t>& values) {
  SCOPED_TRACE(path);
  CudaDevice& device = SharedDevice()->cuda();
  BundleReading reading = ReadBundle(std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / path);
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  const v1::Bundle& bundle = reading.bundle;
  Winner winner;
  winner.bundle = bundle;
  winner.implementation = ImplementationText(bundle);
  winner.variant = StartVariant(bundle);
  for (const auto& [name, value] : values) (*winner.variant.mutable_values())[name] = value;
  winner.gpu = device.gpu();
  winner.size = bundle.goal().size().empty() ? bundle.sizes(0).name() : bundle.goal().size();
  winner.name = "campaigns/1/iterations/1";
  winner.title = bundle.name();
  const v1::Size* size = FindSize(bundle, winner.size);
  ASSERT_NE(size, nullptr);
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, winner.variant, {*size}, device.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_FALSE(built->failure) << built->failure->message();
  winner.cubin = *built->sizes[0].cubin;
  const absl::StatusOr<HandOff> hand_off = MakeHandOff(winner);
  ASSERT_TRUE(hand_off.ok()) << hand_off.status();
  const google::protobuf::RepeatedPtrField<v1::SourceFile> files(hand_off->files.begin(), hand_off->files.end());
  const absl::StatusOr<std::vector<v1::HandOffCheck>> checks = device.CheckHandOff(bundle, files);
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ(checks->size(), hand_off->forms.size());
  for (const v1::HandOffCheck& check : *checks) {
    std::cerr << path << ", " << check.form() << ": " << (check.passed() ? "passed" : "FAILED") << "\n"
              << check.text() << "\n";
    EXPECT_TRUE(check.passed()) << check.form() << ": " << check.text();
  }
}

TEST(GpuHandOff, VerifiesAWinnerOfMacros) {
  PAWL_NEEDS_GPU();
  ExpectVerified("kernels/attention", {{"KV_SPLITS", 4}, {"TILE_M", 16}});
}

TEST(GpuHandOff, VerifiesAWinnerCompiledForOneSize) {
  PAWL_NEEDS_GPU();
  ExpectVerified("kernels/attention", {{"FIXED_SIZE", 1}});
}

TEST(GpuHandOff, VerifiesTemplatesAndCub) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/layer_norm", {{"THREADS", 256}, {"WIDTH", 8}});
}

TEST(GpuHandOff, VerifiesAnInPlaceStepWithAStruct) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/adamw", {{"ITEMS", 4}});
}

TEST(GpuHandOff, VerifiesSwappedBuffers) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/heat", {});
}

TEST(GpuHandOff, VerifiesALoopAndASymbol) {
  PAWL_NEEDS_GPU();
  ExpectVerified("tests/kernels/golden/club_steps", {{"BLOCK", 64}});
}

TEST(GpuHandOff, VerifiesACooperativeKernel) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/normalize", {});
}

TEST(GpuHandOff, VerifiesPackedWeightsAgainstProblemPy) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/q4_gemv", {{"WORDS", 4}});
}

TEST(GpuHandOff, VerifiesNumPyReferences) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/csr_spmm", {});
}

TEST(GpuHandOff, VerifiesAnExtensionsOwnSource) {
  PAWL_NEEDS_GPU();
  ExpectVerified("examples/add_layer_norm", {{"kThreads", 256}});
}

}  // namespace
}  // namespace pawl
