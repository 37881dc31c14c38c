// What a candidate does to its runner stays there: the next variant runs. And the shipped bundles are right.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "kernels/bundle_reader.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "orchestrator/engine/comparison.h"
#include "tests/gpu/examine.h"
#include "worker/profiler.h"
#include "worker/validator.h"

namespace pawl {
namespace {

std::filesystem::path Source(const std::string& path) {
  return std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / path;
}

v1::Bundle Read(const std::string& path) {
  BundleReading reading = ReadBundle(Source(path));
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  return reading.bundle;
}

std::vector<v1::Size> Ladder(const v1::Bundle& bundle) { return {bundle.sizes().begin(), bundle.sizes().end()}; }

TEST(Device, RunsTheNextVariantAfterOneThatFaultsAndOneThatHangs) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = *SharedDevice();
  const v1::Bundle honest = Read("tests/cheats/honest_softmax");
  for (const char* bad : {"tests/cheats/fault", "tests/cheats/hang"}) {
    const v1::Bundle bundle = Read(bad);
    absl::StatusOr<BuiltVariant> built =
        BuildVariant(device.builder(), bundle, StartVariant(bundle), Ladder(bundle), device.gpu());
    ASSERT_TRUE(built.ok()) << built.status();
    absl::StatusOr<Validation> failed = Validate(device, bundle, *built, {});
    ASSERT_TRUE(failed.ok()) << failed.status();
    EXPECT_TRUE(failed->failure.has_value()) << bad;
    const pid_t after = device.runner().pid();
    EXPECT_EQ(after, 0) << "the runner of a candidate that broke its context must be gone";

    absl::StatusOr<BuiltVariant> next =
        BuildVariant(device.builder(), honest, StartVariant(honest), Ladder(honest), device.gpu());
    ASSERT_TRUE(next.ok()) << next.status();
    absl::StatusOr<Validation> fine = Validate(device, honest, *next, {});
    ASSERT_TRUE(fine.ok()) << fine.status();
    EXPECT_FALSE(fine->failure.has_value()) << fine->failure->message();
  }
}

TEST(Device, SaysWhatIsFreeWhenTheGpuIsOutOfMemory) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = *SharedDevice();
  const v1::Bundle bundle = Read("kernels/transpose");
  // Two square matrices that the GPU has memory for, were all of it free.
  v1::Size huge = bundle.sizes(0);
  huge.set_name("huge");
  const int edge = static_cast<int>(std::sqrt(0.9995 * device.gpu().memory_bytes() / 8));
  (*huge.mutable_values())["ROWS"] = edge;
  (*huge.mutable_values())["COLS"] = edge;
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), {huge}, device.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_FALSE(built->failure.has_value()) << built->failure->message();
  absl::StatusOr<Validation> validation = Validate(device, bundle, *built, {});
  ASSERT_TRUE(validation.ok()) << validation.status();
  ASSERT_TRUE(validation->failure.has_value());
  EXPECT_EQ(validation->failure->check(), v1::CHECK_OUT_OF_MEMORY);
  EXPECT_NE(validation->failure->message().find("MiB are free"), std::string::npos) << validation->failure->message();
}

TEST(Device, KeepsItsContextBetweenTrials) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = *SharedDevice();
  const v1::Bundle bundle = Read("tests/cheats/honest_softmax");
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), Ladder(bundle), device.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(Validate(device, bundle, *built, {}).ok());
  const pid_t first = device.runner().pid();
  ASSERT_TRUE(Validate(device, bundle, *built, {}).ok());
  EXPECT_EQ(device.runner().pid(), first);
  EXPECT_NE(first, 0);
}

TEST(Device, AcceptsTheStartVariantOfEveryShippedBundle) {
  PAWL_NEEDS_GPU();
  for (const char* name : {"attention", "transpose", "reduce_sum", "softmax", "rmsnorm"}) {
    const v1::Bundle bundle = Read(std::string("kernels/") + name);
    absl::StatusOr<Examination> examination = Examine(*SharedDevice(), bundle, StartVariant(bundle));
    ASSERT_TRUE(examination.ok()) << name << ": " << examination.status();
    EXPECT_FALSE(examination->failure.has_value())
        << name << ": " << v1::Check_Name(examination->failure->check()) << ": " << examination->failure->message();
    const v1::CompareReply& times = examination->timing.times;
    EXPECT_EQ(times.pairs_size(), 7) << name;
    EXPECT_GT(times.candidate_warm_us(), 0) << name;
    EXPECT_NEAR(times.candidate_warm_us() / times.parent_warm_us(), 1, 0.05) << name;
  }
}

TEST(Device, ProfilesSeveralVariantsInOneRun) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = *SharedDevice();
  if (device.toolkit().ncu.empty()) GTEST_SKIP() << "needs ncu";
  const v1::Bundle bundle = Read("kernels/attention");
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), Ladder(bundle), device.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  const BuiltSize* main = built->Find("main");
  ASSERT_NE(main, nullptr);
  absl::StatusOr<Profiling> profiling = NcuProfiler(device).Profile({{main, {}}, {main, {}}});
  ASSERT_TRUE(profiling.ok()) << profiling.status();
  ASSERT_EQ(profiling->evidence.size(), 2u);
  for (const v1::Evidence& evidence : profiling->evidence) {
    if (evidence.partial()) GTEST_SKIP() << "no counters here: " << evidence.partial_reason();
    ASSERT_EQ(evidence.launches_size(), main->plan.launches_size());
    EXPECT_EQ(evidence.launches(0).metrics().at("grid_size"), 2);
    EXPECT_GT(evidence.launches(0).metrics().at("duration_ns"), 0);
    EXPECT_FALSE(evidence.launches(0).advice().empty());
  }
}

}  // namespace
}  // namespace pawl
