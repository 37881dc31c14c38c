#include "profiles/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "profiles/embedded.h"
#include "profiles/gpus.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, double> Derived(const NcuKernel& kernel) {
  return Metrics::Default().Derive(&kernel, v1::LaunchEvidence(), GpuOf(kernel));
}

std::string ErrorOf(const std::string& toml) {
  const auto metrics = Metrics::Parse(toml, "m.toml");
  return metrics.ok() ? "no error" : std::string(metrics.status().message());
}

v1::LaunchEvidence Launch(int grid, int block, int dynamic_shared, int registers) {
  v1::LaunchEvidence launch;
  launch.mutable_geometry()->mutable_grid()->set_x(grid);
  launch.mutable_geometry()->mutable_grid()->set_y(1);
  launch.mutable_geometry()->mutable_grid()->set_z(1);
  launch.mutable_geometry()->mutable_block()->set_x(block);
  launch.mutable_geometry()->mutable_block()->set_y(1);
  launch.mutable_geometry()->mutable_block()->set_z(1);
  launch.mutable_geometry()->set_shared_bytes(dynamic_shared);
  launch.mutable_resources()->set_registers(registers);
  return launch;
}

TEST(Metrics, ComputesWavesWhereNcuRoundsThemToZero) {
  const NcuKernel tiny = GoldenKernels("zoo_raw_full.csv").at(0);
  EXPECT_EQ(tiny.values.at("launch__waves_per_multiprocessor"), 0);
  EXPECT_DOUBLE_EQ(Derived(tiny).at("waves"), 2.0 / (132 * 8));
}

TEST(Metrics, AgreesWithNcuOnWaves) {
  for (const NcuKernel& kernel : GoldenKernels("zoo_raw_full.csv")) {
    EXPECT_NEAR(Derived(kernel).at("waves"), kernel.values.at("launch__waves_per_multiprocessor"), 0.0051)
        << kernel.name;
  }
}

TEST(Metrics, DerivesSharesFromRealCounters) {
  const auto kernels = GoldenKernels("zoo_raw_full.csv");
  const auto conflict = Derived(kernels.at(1)), padded = Derived(kernels.at(2)), uncoalesced = Derived(kernels.at(3)),
             scalar = Derived(kernels.at(6)), vec4 = Derived(kernels.at(7)), chain = Derived(kernels.at(9)),
             spilling = Derived(kernels.at(10));
  EXPECT_NEAR(conflict.at("bank_conflict_share"), 92.5, 0.1);
  EXPECT_NEAR(padded.at("bank_conflict_share"), 2.8, 0.1);
  EXPECT_NEAR(uncoalesced.at("sector_use_load"), 12.5, 0.1);
  EXPECT_NEAR(uncoalesced.at("sector_use"), 22.2, 0.1);
  EXPECT_NEAR(scalar.at("load_width"), 4, 0.01);
  EXPECT_NEAR(vec4.at("load_width"), 16, 0.01);
  EXPECT_NEAR(chain.at("long_scoreboard_share"), 99.7, 1);
  EXPECT_NEAR(spilling.at("local_share"), 70.7, 0.1);
  EXPECT_EQ(spilling.at("dram_bytes"), 1748514304.0 + 2147781632.0);
  EXPECT_NEAR(conflict.at("tail_loss"), 1 - 65536.0 / (63 * 132 * 8), 1e-9);
}

TEST(Metrics, WarpsASchedulerAgreeWithNcusOwnCount) {
  for (const NcuKernel& kernel : GoldenKernels("zoo_raw_full.csv")) {
    EXPECT_NEAR(Derived(kernel).at("warps_per_scheduler"), kernel.values.at("smsp__warps_active.avg.per_cycle_active"),
                0.2)
        << kernel.name;
  }
}

TEST(Metrics, FallsBackToOtherColumnsForTheSameThing) {
  const NcuKernel conflict = GoldenKernels("zoo_raw_small.csv").at(1);
  EXPECT_FALSE(conflict.values.contains("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"));
  EXPECT_NEAR(Derived(conflict).at("bank_conflict_share"), 92.5, 0.2);
}

TEST(Metrics, AreMissingWhereTheirInputsAre) {
  const auto metrics = Derived(GoldenKernels("zoo_raw_small.csv").at(1));
  for (const char* name : {"stall_barrier", "barrier_share", "sectors_per_request_load", "load_width", "local_share",
                           "tensor_use", "threads_per_instruction", "dram_excess", "local_bytes", "time_us"}) {
    EXPECT_FALSE(metrics.contains(name)) << name;
  }
  // No shared memory was touched: a share of nothing is no 0.
  NcuKernel untouched = GoldenKernels("zoo_raw_small.csv").at(1);
  untouched.values["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] = 0;
  untouched.values["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] = 0;
  untouched.values["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"] = 0;
  EXPECT_FALSE(Derived(untouched).contains("bank_conflict_share"));
}

TEST(Metrics, TakeWhicheverTensorColumnsTheGpuHas) {
  NcuKernel kernel = GoldenKernels("zoo_raw_full.csv").at(0);
  const auto column = [](const char* op) {
    return "sm__inst_executed_pipe_tensor_op_" + std::string(op) + ".avg.pct_of_peak_sustained_active";
  };
  kernel.values[column("gmma")] = 63;
  EXPECT_EQ(Derived(kernel).at("tensor_use"), 63);
  kernel.values.erase(column("gmma"));
  kernel.values.erase(column("dmma"));
  kernel.values[column("imma")] = 7;
  EXPECT_EQ(Derived(kernel).at("tensor_use"), 7);
}

TEST(Metrics, KnowGeometryAndOccupancyWithoutCounters) {
  const GpuSpec* h200 = FindGpu("h200");
  ASSERT_NE(h200, nullptr);
  // The launches of the zoo, whose limits ncu printed.
  for (const NcuKernel& kernel : GoldenKernels("zoo_raw_full.csv")) {
    v1::LaunchEvidence launch = Launch(kernel.values.at("launch__grid_size"), kernel.values.at("launch__block_size"),
                                       kernel.values.at("launch__shared_mem_per_block_dynamic"),
                                       kernel.values.at("launch__registers_per_thread"));
    launch.mutable_resources()->set_static_shared_bytes(kernel.values.at("launch__shared_mem_per_block_static"));
    const auto metrics = Metrics::Default().Derive(nullptr, launch, h200->info);
    const auto counted = Derived(kernel);
    for (const char* name : {"waves", "blocks_per_sm", "limit_registers", "limit_warps", "limit_blocks",
                             "shared_per_block", "tail_loss", "warps_per_scheduler_limit"}) {
      EXPECT_DOUBLE_EQ(metrics.at(name), counted.at(name)) << kernel.name << " " << name;
    }
    EXPECT_NEAR(metrics.at("occupancy_limit"), counted.at("occupancy_limit"), 0.01) << kernel.name;
    EXPECT_FALSE(metrics.contains("dram_throughput"));
  }
}

TEST(Metrics, BelieveTheDriverOnBlocksThatFit) {
  v1::LaunchEvidence launch = Launch(264, 128, 0, 32);
  launch.mutable_resources()->set_blocks_per_sm(2);
  EXPECT_EQ(Metrics::Default().Derive(nullptr, launch, FindGpu("h200")->info).at("waves"), 1);
}

TEST(Metrics, TakeGivenValuesAndCompleteStoredEvidence) {
  v1::LaunchEvidence launch;
  (*launch.mutable_metrics())["bank_conflicts"] = 40;
  (*launch.mutable_metrics())["shared_wavefronts"] = 100;
  (*launch.mutable_metrics())["time_us"] = 7;
  (*launch.mutable_metrics())["occupancy"] = std::nan("");
  const auto metrics = Metrics::Default().Derive(nullptr, launch, v1::GpuInfo());
  EXPECT_EQ(metrics.at("bank_conflict_share"), 40);
  EXPECT_EQ(metrics.at("duration_ns"), 7000);
  EXPECT_FALSE(metrics.contains("occupancy"));
}

TEST(Metrics, AskForEachColumnOnceAndForNoneThatIsOnlyReadWhenThere) {
  const std::vector<std::string> names = Metrics::Default().NcuNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_THAT(names, ::testing::Contains("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"));
  EXPECT_THAT(names, Not(::testing::Contains(HasSubstr("device__attribute"))));
  EXPECT_LE(names.size(), 60u) << "every metric costs passes over the kernel";
}

TEST(MetricsFile, ReportsEveryMistakeAtOnceWithItsLine) {
  const std::string error = ErrorOf(R"([[metric]]
name = "a"
meaning = "one"
ncu = "x.sum"

[[metric]]
name = "b"
meaning = "two"
derive = "a + c"

[[metric]]
name = "a"
meaning = "again"
known = "shoe_size"

[[metric]]
name = "d"
meaning = "no source"

[[metric]]
name = "not a name"
meaning = 5
derive = "1 +"
colour = "red"
)");
  EXPECT_THAT(error, HasSubstr("m.toml:9: metric b: uses c, which is not defined above it"));
  EXPECT_THAT(error, HasSubstr("m.toml:12: metric a: defined twice"));
  EXPECT_THAT(error, AllOf(HasSubstr("m.toml:14:"), HasSubstr("shoe_size"), HasSubstr("grid_size")));
  EXPECT_THAT(error, HasSubstr("m.toml:17: metric d: has no source"));
  EXPECT_THAT(error, HasSubstr("m.toml:21: metric not a name: not a name"));
  EXPECT_THAT(error, HasSubstr("m.toml:22: \"meaning\" must be a text"));
  EXPECT_THAT(error, HasSubstr("m.toml:23: metric not a name:"));
  EXPECT_THAT(error, HasSubstr("m.toml:24: unknown key \"colour\""));
}

TEST(MetricsFile, RefusesWhatIsNoMetricsFile) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no [[metric]]"));
  EXPECT_THAT(ErrorOf("a = 1\nb = = 2\n"), HasSubstr("m.toml:2:"));
  EXPECT_THAT(ErrorOf("metric = 3\n"), HasSubstr("write [[metric]]"));
}

TEST(MetricsFile, ExplainsEveryMetricOfTheOneThatShips) {
  for (const Metric& metric : Metrics::Default().all()) EXPECT_GT(metric.meaning.size(), 10u) << metric.name;
}

}  // namespace
}  // namespace pawl
