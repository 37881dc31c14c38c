// What the search needs of every bundle that ships with Pawl.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <set>

#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Bundles() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  std::vector<fs::path> bundles;
  for (const auto& entry : fs::directory_iterator(fs::path(source == nullptr ? "." : source) / "kernels")) {
    if (fs::exists(entry.path() / "kernel.toml")) bundles.push_back(entry.path());
  }
  return bundles;
}

// Variants that single-variable changes lead to from the start variant, through allowed ones only.
std::set<std::string> Reachable(const v1::Bundle& bundle, const std::set<std::string>& allowed) {
  std::set<std::string> reached = {VariantText(StartVariant(bundle))};
  std::deque<v1::Variant> open = {StartVariant(bundle)};
  while (!open.empty()) {
    const v1::Variant from = open.front();
    open.pop_front();
    for (const v1::Variable& variable : bundle.variables()) {
      for (int32_t value : variable.values()) {
        v1::Variant next = from;
        (*next.mutable_values())[variable.name()] = value;
        const std::string text = VariantText(next);
        if (allowed.contains(text) && reached.insert(text).second) open.push_back(next);
      }
    }
  }
  return reached;
}

TEST(ShippedBundlesTest, TheFiveAreThere) {
  std::set<std::string> names;
  for (const fs::path& folder : Bundles()) names.insert(folder.filename());
  for (const char* name : {"attention", "reduce_sum", "rmsnorm", "softmax", "transpose"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ShippedBundlesTest, ReadWithoutProblemsUnderTheNameOfTheirFolder) {
  for (const fs::path& folder : Bundles()) {
    const BundleReading reading = ReadBundle(folder);
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    EXPECT_EQ(reading.bundle.name(), folder.filename().string());
    EXPECT_FALSE(reading.bundle.hidden().empty()) << folder << " leaves nothing for validation to vary";
    EXPECT_FALSE(reading.bundle.baseline_command().empty()) << folder << " has no baseline";
  }
}

TEST(ShippedBundlesTest, AllowAHundredVariantsAtLeastAndSingleChangesReachThemAll) {
  for (const fs::path& folder : Bundles()) {
    const v1::Bundle bundle = ReadBundle(folder).bundle;
    const absl::StatusOr<std::vector<v1::Variant>> variants = AllowedVariants(bundle);
    ASSERT_TRUE(variants.ok()) << folder << ": " << variants.status();
    EXPECT_GE(variants->size(), 100u) << folder;
    std::set<std::string> allowed;
    for (const v1::Variant& variant : *variants) allowed.insert(VariantText(variant));
    const std::set<std::string> reached = Reachable(bundle, allowed);
    for (const std::string& text : allowed) {
      ASSERT_TRUE(reached.contains(text)) << folder << ": no single change leads to " << text;
    }
  }
}

TEST(ShippedBundlesTest, EveryAllowedVariantHasAGeometryAtEverySizeHiddenOnesIncluded) {
  v1::GpuInfo gpu;
  gpu.set_name("H200-like");
  gpu.set_sm_count(132);
  gpu.set_max_threads_per_sm(2048);
  gpu.set_max_threads_per_block(1024);
  gpu.set_registers_per_sm(65536);
  gpu.set_shared_per_sm(233472);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_l2_bytes(62914560);
  gpu.set_memory_bytes(150754820096);
  for (const fs::path& folder : Bundles()) {
    const v1::Bundle bundle = ReadBundle(folder).bundle;
    std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
    for (uint64_t seed = 0; seed < 2; ++seed) {
      for (const v1::Size& size : HiddenSizes(bundle, seed)) sizes.push_back(size);
    }
    Planner planner(bundle);
    const absl::StatusOr<std::vector<v1::Variant>> variants = AllowedVariants(bundle);
    ASSERT_TRUE(variants.ok()) << folder << ": " << variants.status();
    for (const v1::Variant& variant : *variants) {
      for (const v1::Size& size : sizes) {
        const absl::StatusOr<v1::Plan> plan = planner.MakePlan(variant, size, gpu);
        ASSERT_TRUE(plan.ok()) << folder << " " << VariantText(variant) << ": " << plan.status();
        const std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, gpu);
        ASSERT_FALSE(failure.has_value()) << folder << " " << VariantText(variant) << ": " << failure->message();
      }
    }
  }
}

}  // namespace
}  // namespace pawl
