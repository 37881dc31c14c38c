// Verdicts of a goal over several sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "orchestrator/engine/report/report.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "profiles/gpus.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

struct At {
  double parent_us, candidate_us;
};

// What a worker sends that timed both sizes; of one that is faster in all, with a second process.
v1::TrialResult MeasuredAt(At small, At main, bool confirmed) {
  v1::TrialResult result = MeasuredStart(main.candidate_us);
  result.set_parent_warm_us(main.parent_us);
  result.set_checked_to_keep(confirmed);
  for (const auto& [size, at] : {std::pair{"small", small}, std::pair{"main", main}}) {
    for (int process = 0; process < (confirmed ? 2 : 1); ++process) {
      auto* pairs = process == 0 ? result.mutable_pairs() : result.mutable_confirming_pairs();
      const int before = pairs->size();
      AddPairs(pairs, at.parent_us, at.candidate_us, 12, process);
      for (int i = before; i < pairs->size(); ++i) pairs->Mutable(i)->set_size(size);
    }
  }
  return result;
}

v1::Bundle TwoSizes(double worst) {
  v1::Bundle bundle = WideBundle();
  (*bundle.mutable_goal()->mutable_sizes())["small"] = 0.25;
  (*bundle.mutable_goal()->mutable_sizes())["main"] = 0.75;
  bundle.mutable_goal()->set_worst(worst);
  return bundle;
}

v1::TrialResult StartOfBoth() {
  v1::TrialResult result = MeasuredAt({10, 10}, {100, 100}, false);
  for (const auto& [size, us] : {std::pair{"small", 5.0}, std::pair{"main", 200.0}}) {
    v1::BaselineTime& baseline = *result.add_baselines();
    baseline.set_size(size);
    baseline.set_graph_us(us);
    baseline.set_what("torch");
  }
  return result;
}

class SizesVerdictTest : public testing::Test {
 protected:
  explicit SizesVerdictTest(double worst = 0) : script_(v1::CampaignSpec(), TwoSizes(worst)) {
    start_ = script_.Run(StartOfBoth());
  }
  v1::Iteration Run(At small, At main, bool confirmed = true) {
    return script_.Run(MeasuredAt(small, main, confirmed));
  }

  CampaignScript script_;
  v1::Iteration start_;
};

TEST_F(SizesVerdictTest, JudgesTheWeightedGeometricMean) {
  const v1::Iteration iteration = Run({10, 10 / 1.2}, {100, 100 / 1.1});
  EXPECT_EQ(iteration.verdict(), v1::KEPT) << iteration.reason();
  EXPECT_NEAR(iteration.speedup_over_parent(), std::pow(1.2, 0.25) * std::pow(1.1, 0.75), 0.001);
  ASSERT_EQ(iteration.sizes_size(), 2);
  EXPECT_EQ(iteration.sizes(0).size(), "small");
  EXPECT_EQ(iteration.sizes(0).weight(), 0.25);
  EXPECT_NEAR(std::exp(iteration.sizes(0).interval().mean_log_ratio()), 1.2, 0.001);
  EXPECT_NEAR(iteration.sizes(0).time_us(), 10 / 1.2, 0.01);
  EXPECT_NEAR(iteration.sizes(0).parent_time_us(), 10, 0.01);
  EXPECT_NEAR(iteration.time_us(), 100 / 1.1, 0.01) << "of the heaviest size";
  EXPECT_EQ(iteration.interval().pairs(), 48);
  EXPECT_EQ(iteration.interval().processes(), 2);
}

TEST_F(SizesVerdictTest, KeepsAGainThatIsWorthALossElsewhere) {
  const v1::Iteration iteration = Run({10, 12}, {100, 50});
  EXPECT_EQ(iteration.verdict(), v1::KEPT) << iteration.reason();
}

TEST_F(SizesVerdictTest, RevertsAGainThatIsNotWorthTheLoss) {
  const v1::Iteration iteration = Run({10, 5}, {100, 130}, false);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::SLOWER);
}

TEST_F(SizesVerdictTest, ComparesWithTheBaselineOverTheSameMean) {
  EXPECT_NEAR(start_.speedup_over_baseline(), std::pow(0.5, 0.25) * std::pow(2, 0.75), 1e-6);
  EXPECT_EQ(start_.sizes_size(), 2);
  EXPECT_NEAR(start_.sizes(0).time_us(), 10, 1e-9);
  const v1::Iteration iteration = Run({10, 5}, {100, 50});
  EXPECT_NEAR(iteration.speedup_over_baseline(), 2 * start_.speedup_over_baseline(), 0.002);
}

TEST_F(SizesVerdictTest, DoesNotKeepWhatWasNotTimedEverywhere) {
  v1::TrialResult result = MeasuredAt({10, 12}, {100, 50}, true);
  auto* pairs = result.mutable_pairs();
  pairs->DeleteSubrange(0, 12);  // those of small
  result.clear_confirming_pairs();
  const v1::Iteration iteration = script_.Run(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_THAT(iteration.reason(), HasSubstr("not timed at small"));
  EXPECT_EQ(iteration.sizes_size(), 1);
}

TEST_F(SizesVerdictTest, JudgesACandidateThatStoppedBeforeTheHeaviestSize) {
  v1::TrialResult result = MeasuredAt({10, 90}, {100, 100}, false);
  result.mutable_pairs()->DeleteSubrange(12, 12);  // those of main
  result.clear_warm_us();
  result.clear_cold_us();
  const v1::Iteration iteration = script_.Run(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED) << iteration.reason();
  EXPECT_EQ(iteration.time_us(), 0) << "nobody knows";
  EXPECT_NEAR(iteration.sizes(0).time_us(), 90, 0.1);
}

TEST_F(SizesVerdictTest, TakesPairsThatNameNoSizeForThoseOfTheTrialsOwn) {
  const v1::Iteration iteration = script_.Run(Measured(100, 50));  // as of a worker that knows one size only
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  ASSERT_EQ(iteration.sizes_size(), 1);
  EXPECT_EQ(iteration.sizes(0).size(), "main");
}

TEST_F(SizesVerdictTest, SaysTheTimesOfEverySizeBeforeTheTotalIsMeasured) {
  Run({10, 5}, {100, 50});
  const std::vector<v1::SizeTime> sizes = SizeTimes(script_.state());
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_NEAR(sizes[0].start_us(), 10, 1e-6);
  EXPECT_NEAR(sizes[0].best_us(), 5, 1e-6);
  EXPECT_EQ(sizes[0].baseline_us(), 5);
}

class WorstSizeTest : public SizesVerdictTest {
 protected:
  WorstSizeTest() : SizesVerdictTest(0.95) {}
};

TEST_F(WorstSizeTest, RevertsWhatLosesMoreThanIsAllowedAtOneSize) {
  const v1::Iteration iteration = Run({10, 11}, {100, 50});
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::FASTER) << "in all it is";
  ASSERT_EQ(iteration.failed_gates_size(), 1);
  EXPECT_EQ(iteration.failed_gates(0).gate(), "worst-size");
  EXPECT_NEAR(iteration.failed_gates(0).value(), 10.0 / 11, 0.001);
  EXPECT_THAT(iteration.reason(), HasSubstr("at small it has 90.9 % of the best speed kept there"));
  EXPECT_THAT(iteration.reason(), HasSubstr("no less than 95 %"));
}

TEST_F(WorstSizeTest, KeepsWhatLosesLess) { EXPECT_EQ(Run({10, 10.3}, {100, 50}).verdict(), v1::KEPT); }

TEST_F(WorstSizeTest, HoldsAllStepsTogetherAgainstTheBestSpeedKept) {
  EXPECT_EQ(Run({10, 9}, {100, 90}).verdict(), v1::KEPT);
  EXPECT_EQ(Run({9, 9.3}, {90, 80}).verdict(), v1::KEPT) << "97 % of the best at small";
  const v1::Iteration third = Run({9.3, 9.6}, {80, 70});
  EXPECT_EQ(third.verdict(), v1::REVERTED) << "94 % of it: " << third.reason();
  EXPECT_EQ(third.failed_gates(0).gate(), "worst-size");
}

TEST_F(WorstSizeTest, DoesNotHoldNoiseAgainstACandidate) {
  v1::TrialResult result = MeasuredAt({10, 10.6}, {100, 50}, true);
  // Pairs at small that spread so widely that there may be no loss at all.
  for (auto* pairs : {result.mutable_pairs(), result.mutable_confirming_pairs()}) {
    for (int i = 0; i < 12; ++i) {
      v1::PairSample& pair = *pairs->Mutable(i);
      pair.set_candidate_us(10.6 * (i % 2 == 0 ? 1.3 : 0.77));
      pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
    }
  }
  EXPECT_TRUE(script_.Run(result).failed_gates().empty());
}

TEST(SizesTotal, MeasuresTheGainOverTheSameMeanAndSaysWhereItLoses) {
  CampaignScript script(v1::CampaignSpec(), TwoSizes(0));
  script.Run(StartOfBoth());
  script.Run(MeasuredAt({10, 12}, {100, 50}, true));
  v1::TrialPlanned planned;
  planned.set_purpose(v1::TRIAL_PURPOSE_TOTAL);
  planned.set_iteration(1);
  planned.set_parent(0);
  v1::TrialResult result = MeasuredAt({10, 12}, {100, 50}, true);
  for (const auto& [size, start_us, best_us] : {std::tuple{"small", 10.0, 12.0}, std::tuple{"main", 100.0, 50.0}}) {
    v1::SizeTime& time = *result.add_sizes();
    time.set_size(size);
    time.set_start_us(start_us);
    time.set_best_us(best_us);
  }
  const v1::TotalGain total = JudgeTotal(script.state(), planned, result);
  EXPECT_NEAR(total.speedup_over_start(), std::pow(10.0 / 12, 0.25) * std::pow(2, 0.75), 0.002);
  ASSERT_EQ(total.sizes_size(), 2);
  EXPECT_EQ(total.sizes(0).baseline_us(), 5) << "as iteration 0 timed it";
}

void BeginLeg(const std::string& size, CampaignScript* script) {
  v1::Event event;
  v1::Goal& goal = *event.mutable_leg()->mutable_leg()->mutable_goal();
  goal.set_size(size);
  (*goal.mutable_sizes())[size] = 1;
  script->Apply(event);
}

TEST(SizesOfALegTest, AreWhereAVariantHasItsParentsCode) {
  v1::CampaignSpec spec;
  *spec.mutable_goal() = TwoSizes(0).goal();
  spec.mutable_goal()->set_portfolio(3);
  CampaignScript script(spec, TwoSizes(0));
  ASSERT_EQ(script.Run(StartOfBoth()).sizes_size(), 2);
  const auto try_unroll = [&] {
    v1::TrialResult same;
    same.set_same_code(true);
    script.Propose("UNROLL", 2);
    return script.Run(same);
  };
  BeginLeg("small", &script);
  const v1::Iteration twin = try_unroll();
  ASSERT_EQ(twin.sizes_size(), 1);
  EXPECT_EQ(twin.sizes(0).size(), "small");
  EXPECT_EQ(twin.sizes(0).weight(), 1);
  EXPECT_NEAR(twin.time_us(), 10, 0.1) << "of the leg's size";
  EXPECT_TRUE(script.state().IsMeasured(*script.state().Find(1)));
  BeginLeg("main", &script);
  EXPECT_TRUE(script.state().IsUnknown(*script.state().Find(1))) << "its code at this size was not looked at";
  EXPECT_EQ(try_unroll().number(), 2) << "so that it can be tried here";
}

TEST(SizesRoofTest, IsReachedWhereEverySizeIsAtIt) {
  for (const double small_us : {200, 100}) {
    v1::Bundle bundle = TwoSizes(0);
    bundle.set_work_flops(absl::StrCat(96 * FindGpu("NVIDIA H200")->fp32_tflops * 1e6));  // 96 us at any size
    CampaignScript script(v1::CampaignSpec(), bundle);
    v1::TrialResult start = MeasuredAt({small_us, small_us}, {100, 100}, false);
    start.mutable_gpu()->set_name("NVIDIA H200");
    (*start.mutable_evidence()->add_launches()->mutable_metrics())["dram_throughput"] = 93;
    script.Run(start);
    const std::optional<v1::Event> event = script.Decide();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->has_ended(), small_us == 100) << event->DebugString();
    if (event->has_ended()) {
      EXPECT_THAT(event->ended().message(), HasSubstr("at small, within 5 % of"));
    }
  }
}

}  // namespace
}  // namespace pawl
