// What a candidate does to its runner stays there: the next variant runs. And the shipped bundles are right.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/keep_rule.h"
#include "tests/gpu/shared_device.h"
#include "worker/device/profiler.h"
#include "worker/validate/validator.h"

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
  CudaDevice& device = SharedDevice()->cuda();
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
  CudaDevice& device = SharedDevice()->cuda();
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
  CudaDevice& device = SharedDevice()->cuda();
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

v1::TrialResult Passed(const std::string& name, const absl::StatusOr<v1::TrialResult>& result) {
  EXPECT_TRUE(result.ok()) << name << ": " << result.status();
  if (!result.ok()) return v1::TrialResult();
  EXPECT_FALSE(result->has_failure()) << name << ": " << v1::Check_Name(result->failure().check()) << ": "
                                      << result->failure().message();
  return *result;
}

TEST(Device, AcceptsTheStartVariantOfEveryShippedBundle) {
  PAWL_NEEDS_GPU();
  for (const char* name : {"attention", "transpose", "reduce_sum", "softmax", "rmsnorm"}) {
    const v1::Bundle bundle = Read(std::string("kernels/") + name);
    const v1::TrialResult result = Passed(name, RunAlone(bundle, StartVariant(bundle)));
    EXPECT_EQ(result.pairs_size(), KeepRule().first_pairs) << name;
    EXPECT_GT(result.warm_us(), 0) << name;
    EXPECT_NEAR(result.warm_us() / result.parent_warm_us(), 1, 0.05) << name;
    EXPECT_GT(result.evidence().launches_size(), 0) << name;
    EXPECT_EQ(result.profiled(), SharedDevice()->device().counters()) << name << ": " << result.notes();
    EXPECT_GT(result.copy_gb_s(), 0) << name;
    EXPECT_TRUE(result.baselines_size() == bundle.sizes_size() || !result.baseline_error().empty()) << name;
    EXPECT_EQ(result.device(), SharedDevice()->device().label());
    EXPECT_GE(result.stages_size(), 4) << name;
  }
}

// MMA turns attention's tensor cores on: several times as fast on every GPU that has them.
TEST(Device, TakesAFasterVariantAllTheWayToAKeep) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Read("kernels/attention");
  v1::Variant variant = StartVariant(bundle);
  (*variant.mutable_values())["MMA"] = 1;
  const v1::TrialResult faster = Passed("MMA = 1", RunAgainst(bundle, variant, StartVariant(bundle)));
  EXPECT_GE(faster.pairs_size(), KeepRule().first_pairs);
  EXPECT_GE(faster.confirming_pairs_size(), KeepRule().extended_pairs);
  EXPECT_LT(faster.warm_us(), faster.parent_warm_us());
  EXPECT_EQ(faster.profiled(), SharedDevice()->device().counters()) << faster.notes();
  EXPECT_EQ(faster.sanitize_later(), !SharedDevice()->cuda().toolkit().compute_sanitizer.empty()) << faster.notes();

  const v1::TrialResult slower = Passed("MMA = 0", RunAgainst(bundle, StartVariant(bundle), variant));
  EXPECT_EQ(slower.pairs_size(), kSurePairs) << "several times as slow";
  EXPECT_EQ(slower.confirming_pairs_size(), 0);
  EXPECT_FALSE(slower.profiled());
  EXPECT_TRUE(slower.evidence().partial());
  EXPECT_GT(slower.evidence().launches(0).resources().registers(), 0);
}

TEST(Device, SanitizesSeveralVariantsInOneRun) {
  PAWL_NEEDS_GPU();
  if (SharedDevice()->cuda().toolkit().compute_sanitizer.empty()) GTEST_SKIP() << "needs compute-sanitizer";
  const v1::Bundle bundle = Read("kernels/attention");
  v1::Variant faster = StartVariant(bundle);
  (*faster.mutable_values())["MMA"] = 1;
  const v1::TrialResult right = Passed("attention", RunSanitizer(bundle, {StartVariant(bundle), faster}));
  ASSERT_EQ(right.sanitized_variants_size(), 2);
  for (const v1::SanitizedVariant& one : right.sanitized_variants()) EXPECT_FALSE(one.has_failure());

  const v1::Bundle wrong = Read("tests/cheats/oob_read_unused");
  const v1::TrialResult found =
      Passed("oob_read_unused", RunSanitizer(wrong, {StartVariant(wrong), StartVariant(wrong)}));
  ASSERT_EQ(found.sanitized_variants_size(), 2);
  for (const v1::SanitizedVariant& one : found.sanitized_variants())
    EXPECT_EQ(one.failure().check(), v1::CHECK_MEMCHECK);
}

TEST(Device, ProfilesSeveralVariantsInOneRun) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
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
