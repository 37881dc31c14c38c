#include "orchestrator/engine/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "orchestrator/engine/search/tree_chooser.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;

constexpr double kFlops = 4096 * 100;

v1::Bundle WorkingBundle() {
  v1::Bundle bundle = TinyBundle();
  bundle.set_work_flops("100 * N");
  bundle.set_work_bytes("8 * N");
  return bundle;
}

// Profiled on an H200.
v1::TrialResult Profiled(v1::TrialResult result, double dram_bytes, double occupancy) {
  result.mutable_gpu()->set_name("NVIDIA H200");
  result.mutable_gpu()->set_compute_major(9);
  result.set_profiled(true);
  v1::LaunchEvidence& launch = *result.mutable_evidence()->add_launches();
  launch.set_entry("copy");
  auto& metrics = *launch.mutable_metrics();
  metrics["duration_ns"] = 1000;
  metrics["dram_bytes"] = dram_bytes;
  metrics["occupancy"] = occupancy;
  metrics["sm_throughput"] = occupancy / 2;
  metrics["bank_conflicts"] = 10;
  metrics["shared_wavefronts"] = 40;
  return result;
}

v1::Report Report(const CampaignScript& script) {
  return ReportOf(script.state(), NeighbourChooser(), ProfileSet::Default(), script.now());
}

const v1::BeforeAfter* Find(const google::protobuf::RepeatedPtrField<v1::BeforeAfter>& rows, const std::string& name) {
  for (const v1::BeforeAfter& row : rows) {
    if (row.metric() == name) return &row;
  }
  return nullptr;
}

class ReportTest : public ::testing::Test {
 protected:
  // Iteration 1 is kept, 2 is not, 3 is kept on top of 1.
  ReportTest() : script_({}, WorkingBundle()) {
    v1::TrialResult start = Profiled(MeasuredStart(100), 40960, 20);
    start.set_copy_gb_s(4200);
    for (const auto& [size, us] : {std::pair{"small", 3.0}, {"main", 50.0}}) {
      v1::BaselineTime& baseline = *start.add_baselines();
      baseline.set_size(size);
      baseline.set_graph_us(us);
      baseline.set_what("a peer");
    }
    script_.Run(start);
    script_.Run(Profiled(Measured(100, 80), 20480, 40));
    script_.Run(Measured(80, 90));
    script_.Run(Profiled(Measured(80, 60), 8192, 60));
  }
  CampaignScript script_;
};

TEST_F(ReportTest, LeadsFromTheStartToTheBest) {
  const v1::Report report = Report(script_);
  EXPECT_EQ(report.campaign().name(), "campaigns/7");
  EXPECT_EQ(report.summary(), "Copies a vector");
  EXPECT_THAT(report.path(), ElementsAre(0, 1, 3));
  EXPECT_EQ(report.variables_size(), 2);
  EXPECT_THAT(report.rebuild(), ElementsAre("pawl best 7 --output winner", "pawl verify 7"));
}

TEST_F(ReportTest, PutsStartKeptAndBestUnderTheRoof) {
  const v1::Roofline roofline = Report(script_).roofline();
  EXPECT_EQ(roofline.bandwidth_gb_s(), 4200) << "as the campaign measured it";
  EXPECT_EQ(roofline.peak(), "fp32");
  EXPECT_DOUBLE_EQ(roofline.peak_gflop_s(), 66900);
  ASSERT_EQ(roofline.points_size(), 3);
  EXPECT_EQ(roofline.points(0).iteration(), 0);
  EXPECT_EQ(roofline.points(1).iteration(), 1);
  EXPECT_EQ(roofline.points(2).iteration(), 3);
  EXPECT_DOUBLE_EQ(roofline.points(0).intensity(), kFlops / 40960);
  EXPECT_DOUBLE_EQ(roofline.points(2).intensity(), kFlops / 8192);
  EXPECT_DOUBLE_EQ(roofline.points(0).gflop_s(), kFlops / 100 / 1e3);
  EXPECT_TRUE(roofline.points(0).counted());
}

TEST_F(ReportTest, CountsTheTrafficOfAllPointsByTheBundleWhereOneHasNoCount) {
  v1::TrialResult uncounted = Profiled(Measured(60, 50), 0, 60);
  uncounted.mutable_evidence()->mutable_launches(0)->mutable_metrics()->erase("dram_bytes");
  script_.Run(uncounted);
  const v1::Roofline roofline = Report(script_).roofline();
  ASSERT_EQ(roofline.points_size(), 4);
  for (const v1::RooflinePoint& point : roofline.points()) {
    EXPECT_FALSE(point.counted()) << point.iteration();
    EXPECT_DOUBLE_EQ(point.intensity(), kFlops / (8 * 4096)) << point.iteration();
  }
}

TEST_F(ReportTest, CountsTheTrafficOfEveryLaunch) {
  v1::TrialResult two = Profiled(Measured(60, 50), 4096, 60);
  *two.mutable_evidence()->add_launches() = two.evidence().launches(0);
  script_.Run(two);
  const v1::Roofline roofline = Report(script_).roofline();
  ASSERT_EQ(roofline.points_size(), 4);
  EXPECT_TRUE(roofline.points(3).counted());
  EXPECT_DOUBLE_EQ(roofline.points(3).intensity(), kFlops / 8192);
}

TEST_F(ReportTest, ComparesTheEvidenceOfStartAndBest) {
  const v1::Report report = Report(script_);
  const v1::BeforeAfter* occupancy = Find(report.changes(), "occupancy");
  ASSERT_NE(occupancy, nullptr);
  EXPECT_EQ(occupancy->start(), 20);
  EXPECT_EQ(occupancy->best(), 60);
  EXPECT_EQ(occupancy->unit(), "%");
  EXPECT_NE(occupancy->meaning(), "");
  const v1::BeforeAfter* conflicts = Find(report.changes(), "bank_conflict_share");
  ASSERT_NE(conflicts, nullptr) << "it is derived where the evidence lacks it";
  EXPECT_EQ(conflicts->start(), 25);
  ASSERT_NE(Find(report.speed_of_light(), "sm_throughput"), nullptr);
  EXPECT_EQ(Find(report.speed_of_light(), "sm_throughput")->best(), 30);
  EXPECT_EQ(Find(report.speed_of_light(), "dram_throughput"), nullptr) << "neither has it";
}

TEST_F(ReportTest, ListsEverySizeWithBaselineAndMemory) {
  const v1::Report report = Report(script_);
  ASSERT_EQ(report.sizes_size(), 2);
  EXPECT_EQ(report.sizes(0).size(), "small");
  EXPECT_EQ(report.sizes(0).baseline_us(), 3);
  EXPECT_EQ(report.sizes(0).start_us(), 0) << "nobody timed it";
  EXPECT_EQ(report.sizes(0).start_bytes(), 2 * 4 * 100);
  EXPECT_EQ(report.sizes(1).start_us(), 100);
  EXPECT_EQ(report.sizes(1).best_us(), 60);
  EXPECT_EQ(report.sizes(1).baseline_us(), 50);
  EXPECT_EQ(report.sizes(1).best_bytes(), 2 * 4 * 4096);
}

TEST_F(ReportTest, TakesSizesFromTheWorkerThatTimedThem) {
  v1::Event event;
  v1::TotalGain& total = *event.mutable_finished()->mutable_total_gain();
  event.mutable_finished()->set_trial(script_.state().next_trial());
  total.set_iteration(3);
  v1::SizeTime& size = *total.add_sizes();
  size.set_size("small");
  size.set_start_us(9);
  size.set_best_us(6);
  size.set_best_bytes(12345);
  script_.Apply(event);
  v1::Report report = Report(script_);
  EXPECT_EQ(report.sizes(0).start_us(), 9);
  EXPECT_EQ(report.sizes(0).best_us(), 6);
  EXPECT_EQ(report.sizes(0).best_bytes(), 12345);
  EXPECT_EQ(report.sizes(0).baseline_us(), 3);
  total.mutable_beside_baseline()->mutable_interval()->set_mean_log_ratio(std::log(1.5));
  total.mutable_beside_baseline()->mutable_interval()->set_pairs(24);
  script_.Apply(event);
  report = Report(script_);
  EXPECT_NEAR(report.sizes(1).baseline_us(), 1.5 * 60, 1e-9) << "the ratio that was measured beside it";
  EXPECT_EQ(report.sizes(0).baseline_us(), 3) << "of the goal's size only";
  total.set_iteration(1);
  script_.Apply(event);
  EXPECT_EQ(Report(script_).sizes(0).start_us(), 0) << "they are not the best variant's";
}

TEST_F(ReportTest, SaysWhatIsLeftToTry) {
  const v1::Report report = Report(script_);
  ASSERT_GT(report.next_size(), 0);
  EXPECT_EQ(report.next(0).parent(), 3);
}

TEST_F(ReportTest, CountsMinutesWithoutPauses) {
  const double before = Report(script_).campaign().minutes();
  script_.Pass(absl::Minutes(2));
  EXPECT_DOUBLE_EQ(Report(script_).campaign().minutes(), before + 2);
  script_.Pause();
  EXPECT_DOUBLE_EQ(script_.summary().minutes(), before + 2) << "in the summary too";
  script_.Pass(absl::Minutes(5));
  EXPECT_DOUBLE_EQ(Report(script_).campaign().minutes(), before + 2);
}

TEST(FailedReportTest, HasNoStartToSpeakOf) {
  CampaignScript script({}, WorkingBundle());
  script.Run(FailedCheck(v1::CHECK_TOLERANCE, "out differs"));
  while (script.Decide()) {
  }
  ASSERT_EQ(script.summary().state(), v1::FAILED);
  const v1::Report report = Report(script);
  EXPECT_EQ(report.campaign().state(), v1::FAILED);
  EXPECT_TRUE(report.path().empty());
  EXPECT_TRUE(report.next().empty());
  EXPECT_TRUE(report.rebuild().empty());
  EXPECT_FALSE(report.has_roofline());
  EXPECT_EQ(report.sizes_size(), 2);
}

TEST(PlainReportTest, DoesWithoutBaselineWorkAndCounters) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  const v1::Report report = Report(script);
  EXPECT_FALSE(report.has_roofline());
  EXPECT_TRUE(report.speed_of_light().empty());
  EXPECT_TRUE(report.findings().empty());
  EXPECT_TRUE(report.patterns().empty());
  EXPECT_EQ(report.sizes(1).baseline_us(), 0);
  EXPECT_THAT(report.path(), ElementsAre(0));
}

TEST(StagePlansTest, PlansByTheMeanOfTheIterationsBefore) {
  std::vector<v1::Iteration> iterations(3);
  const double seconds[] = {4, 2, 6};
  for (size_t i = 0; i < 3; ++i) {
    v1::StageTime& stage = *iterations[i].add_stages();
    stage.set_stage(v1::STAGE_BUILD);
    stage.set_seconds(seconds[i]);
  }
  const std::vector<v1::StagePlan> plans = StagePlans(iterations);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].planned_seconds(), 4 + 3);
  EXPECT_EQ(plans[0].actual_seconds(), 2 + 6);
  EXPECT_EQ(plans[0].total_seconds(), 12);
  EXPECT_EQ(plans[0].times(), 3);
}

}  // namespace
}  // namespace pawl
