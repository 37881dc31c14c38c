// The counters that CUPTI reads are those that ncu reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/device/cupti_profiler.h"
#include "worker/validate/load_built.h"

namespace pawl {
namespace {

constexpr int kRuns = 3;

// metric -> value of each run
using Series = std::map<std::string, std::vector<double>>;

void Add(const v1::Evidence& evidence, Series* series) {
  for (int i = 0; i < evidence.launches_size(); ++i) {
    for (const auto& [metric, value] : evidence.launches(i).metrics()) {
      (*series)[absl::StrCat(i, ",", metric)].push_back(value);
    }
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(Counters, OfCuptiAreThoseOfNcu) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  if (device.toolkit().ncu.empty()) GTEST_SKIP() << "needs ncu";
  CuptiProfiler cupti(device, Metrics::Default());
  NcuProfiler ncu(device);
  std::ofstream table;
  if (const char* file = getenv("PAWL_COUNTERS_CSV"); file != nullptr) table.open(file);
  table << "bundle,launch,metric,ncu,cupti,ncu_low,ncu_high\n";
  for (const char* name : {"attention", "transpose", "softmax", "rmsnorm", "gemm", "reduce_sum"}) {
    const BundleReading reading = ReadBundle(std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "kernels" / name);
    ASSERT_TRUE(reading.problems.empty()) << name;
    const v1::Size* size = nullptr;
    for (const v1::Size& each : reading.bundle.sizes()) {
      if (each.name() == reading.bundle.goal().size()) size = &each;
    }
    ASSERT_NE(size, nullptr);
    absl::StatusOr<BuiltVariant> built =
        BuildVariant(device.builder(), reading.bundle, StartVariant(reading.bundle), {*size}, device.gpu());
    ASSERT_TRUE(built.ok()) << built.status();
    absl::StatusOr<v1::RunnerReply> loaded = LoadBuilt(device.runner(), built->sizes[0]);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto& resources = loaded->load().resources();
    const ProfileItem item = {&built->sizes[0], {resources.begin(), resources.end()}};
    Series by_ncu, by_cupti;
    absl::StatusOr<Profiling> slow = ncu.Profile(std::vector<ProfileItem>(kRuns, item));
    ASSERT_TRUE(slow.ok()) << slow.status();
    for (const v1::Evidence& evidence : slow->evidence) {
      if (evidence.partial()) GTEST_SKIP() << "no counters here: " << evidence.partial_reason();
      Add(evidence, &by_ncu);
    }
    double seconds = 0;
    for (int run = 0; run < kRuns; ++run) {
      absl::StatusOr<Profiling> fast = cupti.Profile({item});
      ASSERT_TRUE(fast.ok()) << fast.status();
      ASSERT_FALSE(fast->evidence[0].partial()) << fast->evidence[0].partial_reason();
      Add(fast->evidence[0], &by_cupti);
      seconds = fast->seconds;
    }
    std::printf("%s: ncu %.2f s for %d, CUPTI %.3f s for one\n", name, slow->seconds, kRuns, seconds);
    for (const auto& [metric, values] : by_ncu) {
      const auto other = by_cupti.find(metric);
      EXPECT_NE(other, by_cupti.end()) << name << " " << metric << " is ncu's only";
      if (other == by_cupti.end()) continue;
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      table << name << "," << metric << "," << Median(values) << "," << Median(other->second) << "," << *low << ","
            << *high << "\n";
    }
  }
}

}  // namespace
}  // namespace pawl
