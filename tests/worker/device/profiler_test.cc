#include "worker/device/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "profiles/ncu/ncu_csv.h"
#include "worker/device/cupti_profiler.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConnected[] = "==PROF== Connected to process 4711 (/opt/pawl/bin/pawl-runner)\n";

TEST(ExplainNcuFailure, SaysHowToAllowCounters) {
  EXPECT_THAT(
      ExplainNcuFailure(absl::StrCat(kConnected,
                                     "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA "
                                     "GPU Performance Counters on the target device 0.\n"
                                     "==WARNING== No kernels were profiled.\n")),
      AllOf(HasSubstr("ERR_NVGPUCTRPERM"), HasSubstr("options nvidia NVreg_RestrictProfilingToAdminUsers=0"),
            HasSubstr("/etc/modprobe.d"), HasSubstr("reboot"), HasSubstr("CAP_SYS_ADMIN")));
}

TEST(ExplainNcuFailure, SaysWhoElseHoldsTheCounters) {
  EXPECT_THAT(ExplainNcuFailure("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no "
                                "other tool (like DCGM) is concurrently collecting profiling data.\n"
                                "==WARNING== No kernels were profiled.\n"),
              AllOf(HasSubstr("`dcgmi profile --pause`"), HasSubstr("exporter")));
}

TEST(ExplainNcuFailure, SaysWhatToDoAboutTheLockFile) {
  EXPECT_THAT(
      ExplainNcuFailure("==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this "
                        "process has write permissions on this file.\n"),
      AllOf(HasSubstr("lock file"), HasSubstr("TMPDIR"), HasSubstr("one ncu at a time")));
}

TEST(ExplainNcuFailure, SaysThatNothingRan) {
  EXPECT_THAT(ExplainNcuFailure(absl::StrCat(kConnected, "==WARNING== No kernels were profiled.\n")),
              HasSubstr("none of the launches' entries ran"));
}

TEST(ExplainNcuFailure, ShowsTheRunnersOwnErrorHoweverMuchWasProfiledBefore) {
  std::string output = kConnected;
  for (int i = 0; i < 96; ++i) {
    absl::StrAppend(&output, "==PROF== Profiling \"softmax_rows\" - ", i, ": 0%....50%....100% - 9 passes\n");
  }
  absl::StrAppend(&output, "==ERROR== The application returned an error code (1).\n",
                  "pawl-runner: CUDA_ERROR_ILLEGAL_ADDRESS (700) in cuStreamSynchronize\nexited with code 1");
  const std::string text = ExplainNcuFailure(output);
  EXPECT_THAT(text, AllOf(HasSubstr("the runner failed under ncu"), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
                          Not(HasSubstr("==PROF=="))));
  EXPECT_LT(text.size(), 600u);
}

TEST(ExplainNcuFailure, ShowsWhatItDoesNotKnow) {
  EXPECT_THAT(ExplainNcuFailure(absl::StrCat(kConnected, "==ERROR== Something new\ndied of signal 9 (Killed)")),
              AllOf(HasSubstr("ncu failed"), HasSubstr("Something new"), HasSubstr("died of signal 9")));
  EXPECT_LT(ExplainNcuFailure(std::string(1 << 20, 'x')).size(), 600u);
}

TEST(EvidenceWithoutCounters, HasGeometryResourcesAndWhatFollowsFromThem) {
  BuiltSize built;
  v1::PlanLaunch* launch = built.plan.add_launches();
  launch->set_entry("softmax");
  launch->mutable_grid()->set_x(264);
  launch->mutable_grid()->set_y(1);
  launch->mutable_grid()->set_z(1);
  launch->mutable_block()->set_x(128);
  launch->mutable_block()->set_y(1);
  launch->mutable_block()->set_z(1);
  launch->add_arguments()->set_i32(7);
  built.plan.set_bytes(1000);
  v1::ResourceUse use;
  use.set_registers(40);
  use.set_blocks_per_sm(2);
  v1::GpuInfo gpu;
  gpu.set_sm_count(132);
  const v1::Evidence evidence = EvidenceWithoutCounters(gpu, {&built, {use}}, "not asked for");
  EXPECT_TRUE(evidence.partial());
  EXPECT_EQ(evidence.partial_reason(), "not asked for");
  ASSERT_EQ(evidence.launches_size(), 1);
  EXPECT_EQ(evidence.launches(0).geometry().arguments_size(), 0);
  EXPECT_EQ(evidence.launches(0).resources().registers(), 40);
  EXPECT_EQ(evidence.launches(0).metrics().at("grid_size"), 264);
  EXPECT_EQ(evidence.launches(0).metrics().at("waves"), 1);
  EXPECT_EQ(evidence.launches(0).metrics().at("work_bytes"), 1000);
  EXPECT_FALSE(evidence.launches(0).metrics().contains("duration_ns"));
}

TEST(RawPage, IsReadAsNcusOwn) {
  NcuKernel first{.id = 0, .name = "split", .block = "(256, 1, 1)", .grid = "(8, 1, 1)"};
  first.values = {{"dram__bytes.sum", 1.25e9}, {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 41.5}};
  NcuKernel second{.id = 1, .name = "combine", .block = "(32, 1, 1)", .grid = "(1, 1, 1)"};
  second.values = {{"dram__bytes.sum", 0}};
  const absl::StatusOr<std::vector<NcuKernel>> read = ReadNcuRaw(RawPage({first, second}));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at(0).name, "split");
  EXPECT_EQ(read->at(0).grid, "(8, 1, 1)");
  EXPECT_EQ(read->at(0).values.at("dram__bytes.sum"), 1.25e9);
  EXPECT_EQ(read->at(0).values.at("sm__throughput.avg.pct_of_peak_sustained_elapsed"), 41.5);
  EXPECT_EQ(read->at(1).values.at("dram__bytes.sum"), 0);
  EXPECT_EQ(read->at(1).values.count("sm__throughput.avg.pct_of_peak_sustained_elapsed"), 0u);
  EXPECT_EQ(RawPage({}), "");
}

class ScriptedProfiler : public Profiler {
 public:
  explicit ScriptedProfiler(absl::StatusOr<Profiling> answer, std::vector<std::string> missing = {})
      : answer_(std::move(answer)), missing_(std::move(missing)) {}
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>&) override {
    ++asked;
    return answer_;
  }
  const std::vector<std::string>& missing() const override { return missing_; }
  int asked = 0;

 private:
  absl::StatusOr<Profiling> answer_;
  std::vector<std::string> missing_;
};

TEST(FastestProfiler, UsesCuptiWhereItWorks) {
  Profiling fast;
  fast.raw = "fast";
  ScriptedProfiler cupti(fast, {"a"}), ncu(Profiling{}, {"b"});
  FastestProfiler profiler(cupti, ncu);
  EXPECT_EQ(profiler.Profile({}).value().raw, "fast");
  EXPECT_EQ(profiler.why_ncu(), "");
  EXPECT_EQ(profiler.missing(), std::vector<std::string>{"a"});
  EXPECT_EQ(ncu.asked, 0);
}

TEST(FastestProfiler, TakesNcuForGoodOnceCuptiCantAndSaysItOnce) {
  ScriptedProfiler cupti(absl::UnavailableError("libcupti was not found")), ncu(Profiling{}, {"b"});
  FastestProfiler profiler(cupti, ncu);
  EXPECT_EQ(profiler.Profile({}).value().note, "counters come from ncu, which takes seconds: libcupti was not found");
  EXPECT_EQ(profiler.Profile({}).value().note, "");
  EXPECT_EQ(cupti.asked, 1);
  EXPECT_EQ(ncu.asked, 2);
  EXPECT_EQ(profiler.missing(), std::vector<std::string>{"b"});
}

TEST(FastestProfiler, DoesNotTakeAFaultOfTheWorkerForALackOfCounters) {
  ScriptedProfiler cupti(absl::CancelledError("stopped")), ncu(Profiling{});
  FastestProfiler profiler(cupti, ncu);
  EXPECT_TRUE(absl::IsCancelled(profiler.Profile({}).status()));
  EXPECT_EQ(ncu.asked, 0);
  EXPECT_EQ(profiler.why_ncu(), "");
}

}  // namespace
}  // namespace pawl
