// Every bundle in examples/ is read and can be planned at every size, hidden ones included.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostVariants = 500;

std::vector<fs::path> Examples() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  std::vector<fs::path> bundles;
  for (const auto& entry : fs::directory_iterator(fs::path(source == nullptr ? "." : source) / "examples")) {
    if (fs::exists(entry.path() / "kernel.toml")) bundles.push_back(entry.path());
  }
  return bundles;
}

TEST(ExampleBundlesTest, AreReadUnderTheNameOfTheirFolder) {
  EXPECT_GE(Examples().size(), 6u);
  for (const fs::path& folder : Examples()) {
    const BundleReading reading = ReadBundle(folder);
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    EXPECT_EQ(reading.bundle.name(), folder.filename().string());
  }
}

TEST(ExampleBundlesTest, ArePlannedAtEverySize) {
  v1::GpuInfo gpu = TypicalGpu();
  gpu.set_compute_major(9);
  for (const fs::path& folder : Examples()) {
    const v1::Bundle bundle = ReadBundle(folder).bundle;
    std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
    for (const v1::Size& size : HiddenSizes(bundle, 1)) sizes.push_back(size);
    Planner planner(bundle);
    const absl::StatusOr<std::vector<v1::Variant>> variants = AllowedVariants(bundle);
    ASSERT_TRUE(variants.ok()) << folder << ": " << variants.status();
    for (size_t i = 0; i < variants->size(); i += 1 + variants->size() / kMostVariants) {
      for (const v1::Size& size : sizes) {
        const absl::StatusOr<v1::Plan> plan = planner.MakePlan((*variants)[i], size, gpu);
        ASSERT_TRUE(plan.ok()) << folder << " " << VariantText(bundle, (*variants)[i]) << ": " << plan.status();
      }
    }
  }
}

}  // namespace
}  // namespace pawl
