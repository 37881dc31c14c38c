#include "orchestrator/engine/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "profiles/embedded.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A campaign whose start takes 100 us, with TILE 64 planned from it.
class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    script_.Run(MeasuredStart(100));
    script_.Decide();
  }
  v1::Iteration Judged(const v1::TrialResult& result) {
    v1::TrialPlanned planned = script_.state().open_trials().at(2).planned;
    planned.mutable_noise()->set_variance(1e-6);
    return Judge(script_.state(), planned, result);
  }
  CampaignScript script_;
};

TEST_F(JudgeTest, KeepsWhatTwoProcessesFoundFaster) {
  const v1::Iteration iteration = Judged(Measured(100, 80));
  EXPECT_EQ(iteration.verdict(), v1::KEPT);
  EXPECT_EQ(iteration.comparison(), v1::FASTER);
  EXPECT_EQ(iteration.name(), "campaigns/7/iterations/1");
  EXPECT_EQ(iteration.number(), 1);
  EXPECT_EQ(iteration.parent(), 0);
  EXPECT_EQ(iteration.variant().at("TILE"), 64);
  EXPECT_EQ(iteration.change().variable(), "TILE");
  EXPECT_EQ(iteration.time_us(), 80);
  EXPECT_EQ(iteration.parent_time_us(), 100);
  EXPECT_NEAR(iteration.speedup_over_parent(), 1.25, 0.001);
  EXPECT_NEAR(iteration.speedup_over_start(), 1.25, 0.001);
  EXPECT_EQ(iteration.interval().pairs(), 24);
  EXPECT_EQ(iteration.interval().processes(), 2);
  EXPECT_EQ(iteration.device(), "NVIDIA H200");
  EXPECT_EQ(iteration.stages_size(), 1);
  EXPECT_THAT(iteration.reason(), HasSubstr("Faster: +25.00 % (99 % of further measurements lie between"));
}

TEST_F(JudgeTest, StoresWhenStagesBeganAndWhatRanBesideThem) {
  v1::TrialResult result = Measured(100, 80);
  result.mutable_stages(0)->set_begin(1.5);
  result.set_built_ahead(true);
  v1::BesideTime& ahead = *result.add_beside();
  ahead.set_kind(v1::BesideTime::BUILD_AHEAD);
  ahead.set_begin(-0.5);
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.stages(0).begin(), 1.5);
  EXPECT_TRUE(iteration.built_ahead());
  ASSERT_EQ(iteration.beside_size(), 1);
  EXPECT_EQ(iteration.beside(0).begin(), -0.5);
}

TEST_F(JudgeTest, DoesNotKeepWhatNoFreshProcessConfirmed) {
  v1::TrialResult result = Measured(100, 80);
  result.clear_confirming_pairs();
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::UNCLEAR);
}

TEST_F(JudgeTest, DoesNotKeepWhatAFreshProcessDoesNotConfirm) {
  v1::TrialResult result = Measured(100, 80);
  result.clear_confirming_pairs();
  AddPairs(result.mutable_confirming_pairs(), 100, 100, 12, 1);
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::UNCLEAR);
  EXPECT_THAT(iteration.reason(), HasSubstr("the processes differ by more than their noise: +25.00 %, +0.00 %"));
}

TEST_F(JudgeTest, KeepsApartTheProcessesThatConfirm) {
  v1::TrialResult result = Measured(100, 80);
  AddPairs(result.mutable_confirming_pairs(), 100, 79, 12, 2);
  AddPairs(result.mutable_confirming_pairs(), 100, 81, 12, 3);
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.interval().processes(), 4);
  EXPECT_EQ(iteration.interval().pairs(), 48);
  EXPECT_EQ(iteration.verdict(), v1::KEPT) << iteration.reason();
}

TEST_F(JudgeTest, AssumesTheNoiseThatWasPlannedWith) {
  v1::TrialPlanned planned = script_.state().open_trials().at(2).planned;
  planned.mutable_noise()->set_variance(0.1 * 0.1);
  EXPECT_EQ(Judge(script_.state(), planned, Measured(100, 80)).comparison(), v1::UNCLEAR);
}

TEST_F(JudgeTest, DoesNotBelieveTimesThatTheSamplesDoNotBearOut) {
  v1::TrialResult result = Measured(100, 120);
  result.set_warm_us(10);  // the worker's word
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::SLOWER);
}

TEST_F(JudgeTest, DoesNotKeepOnTooFewPairs) {
  v1::TrialResult result = Measured(100, 80);
  while (result.pairs_size() > 3) result.mutable_pairs()->RemoveLast();
  EXPECT_EQ(Judged(result).comparison(), v1::UNCLEAR);
  result.clear_pairs();
  EXPECT_EQ(Judged(result).verdict(), v1::REVERTED);
}

TEST_F(JudgeTest, NeedsFewPairsOfAnIterationThatIsMuchSlower) {
  v1::TrialResult result = Measured(100, 130);
  while (result.pairs_size() > 2) result.mutable_pairs()->RemoveLast();
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::SLOWER);
  EXPECT_THAT(iteration.reason(), HasSubstr("1 process, 2 pairs"));
  v1::TrialPlanned planned = script_.state().open_trials().at(2).planned;
  planned.set_expedition(true);
  EXPECT_EQ(Judge(script_.state(), planned, result).comparison(), v1::UNCLEAR) << "a step of an expedition";
  planned.set_expedition(false);
  planned.set_purpose(v1::TRIAL_PURPOSE_END);
  EXPECT_EQ(Judge(script_.state(), planned, result).comparison(), v1::UNCLEAR);
}

TEST_F(JudgeTest, DoesNotKeepWhenTheGpuWasUnsteady) {
  v1::TrialResult result = Measured(100, 80);
  result.set_discarded(10);
  EXPECT_EQ(Judged(result).comparison(), v1::UNCLEAR);
  for (const char* reason : {"the SM clock changed", "an uncorrected ECC error"}) result.add_disturbances(reason);
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.reason(), "Unclear: 10 pairs were discarded: the SM clock changed; an uncorrected ECC error");
}

// No pair was left to take a time from: the GPU's fault, not the variant's.
TEST_F(JudgeTest, DoesNotRejectWhatAnUnsteadyGpuLeftNoPairsOf) {
  v1::TrialResult result = Measured(100, 80);
  result.clear_pairs();
  result.clear_confirming_pairs();
  for (const auto set : {&v1::TrialResult::set_warm_us, &v1::TrialResult::set_cold_us,
                         &v1::TrialResult::set_parent_warm_us, &v1::TrialResult::set_parent_cold_us}) {
    (result.*set)(0);
  }
  EXPECT_EQ(Judged(result).verdict(), v1::REJECTED) << "a worker that says nothing";
  result.set_discarded(10);
  result.add_disturbances("Pawl's own kernel took longer at times");
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::UNCLEAR);
  EXPECT_EQ(iteration.reason(), "Unclear: 10 pairs were discarded: Pawl's own kernel took longer at times");
}

TEST_F(JudgeTest, RejectsNobodyWhereTheGpuIsTooUnsteadyToJudge) {
  const v1::Iteration iteration = Judged(FailedCheck(v1::CHECK_UNSTEADY, "the GPU was unsteady in 10 pairs: too hot"));
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::UNCLEAR);
  EXPECT_EQ(iteration.reason(), "Unclear: the GPU was unsteady in 10 pairs: too hot");
  ASSERT_EQ(iteration.failed_gates_size(), 1);
  EXPECT_EQ(iteration.failed_gates(0).gate(), "steady-timing");
}

// A worker makes them where it finds a variant faster itself: it knows of processes that left no pairs.
TEST_F(JudgeTest, KeepsNothingWithoutTheChecksBeforeAKeep) {
  v1::TrialResult result = Measured(100, 80);
  EXPECT_EQ(Judged(result).verdict(), v1::KEPT);
  result.set_checked_to_keep(false);
  result.set_confirming_discarded(4);
  result.add_disturbances("the SM clock changed");
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::UNCLEAR);
  EXPECT_EQ(iteration.reason(),
            "Unclear: the worker could not confirm it, and left out the checks before a keep: the SM clock changed");
}

TEST_F(JudgeTest, RevertsWhatIsTheSameOrSlower) {
  EXPECT_EQ(Judged(Measured(100, 100)).comparison(), v1::SAME);
  EXPECT_EQ(Judged(Measured(100, 100)).verdict(), v1::REVERTED);
  EXPECT_EQ(Judged(Measured(100, 130)).comparison(), v1::SLOWER);
  EXPECT_EQ(Judged(Measured(100, 130)).verdict(), v1::REVERTED);
}

TEST_F(JudgeTest, AsksForTheGainThatTheCampaignSays) {
  v1::CampaignSpec spec;
  spec.mutable_keep()->set_min_gain(0.3);
  CampaignScript script(spec);
  script.Run(MeasuredStart(100));
  EXPECT_EQ(script.Run(Measured(100, 80)).verdict(), v1::REVERTED);
  EXPECT_EQ(script.Run(Measured(100, 70)).verdict(), v1::KEPT);
}

TEST_F(JudgeTest, RejectsTimesThatAreNone) {
  for (double us : {0.0, -1.0, kNan, std::numeric_limits<double>::infinity()}) {
    v1::TrialResult result = Measured(100, 80);
    result.set_warm_us(us);
    const v1::Iteration iteration = Judged(result);
    EXPECT_EQ(iteration.verdict(), v1::REJECTED) << us;
    EXPECT_THAT(iteration.reason(), HasSubstr("no time"));
    EXPECT_EQ(iteration.comparison(), v1::COMPARISON_RESULT_UNSPECIFIED);
  }
}

TEST_F(JudgeTest, KeepsNothingBySamplesThatAreNoNumbers) {
  v1::TrialResult result = Measured(100, 80);
  result.mutable_pairs(3)->set_log_ratio(kNan);
  EXPECT_EQ(Judged(result).verdict(), v1::REVERTED);
  result = Measured(100, 80);
  result.mutable_confirming_pairs(3)->set_log_ratio(std::numeric_limits<double>::infinity());
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_TRUE(std::isfinite(iteration.speedup_over_start()));
}

TEST_F(JudgeTest, RejectsAFailureWithItsMessage) {
  const v1::Iteration iteration = Judged(FailedCheck(v1::CHECK_RACECHECK, "two threads write out[3]"));
  EXPECT_EQ(iteration.verdict(), v1::REJECTED);
  EXPECT_EQ(iteration.failure().check(), v1::CHECK_RACECHECK);
  EXPECT_EQ(iteration.reason(), "two threads write out[3]");
  EXPECT_EQ(iteration.time_us(), 0);
  EXPECT_EQ(iteration.variant().at("TILE"), 64);
}

TEST_F(JudgeTest, RevertsWhatHasItsParentsCodeWithoutAMeasurement) {
  v1::TrialResult result;
  result.set_same_code(true);
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REVERTED);
  EXPECT_EQ(iteration.comparison(), v1::SAME);
  EXPECT_EQ(iteration.speedup_over_parent(), 1);
  EXPECT_EQ(iteration.speedup_over_start(), 1);
  EXPECT_EQ(iteration.time_us(), 100);
  EXPECT_THAT(iteration.reason(), HasSubstr("the same machine code and launches as its parent"));
}

TEST_F(JudgeTest, RejectsWhatWasPassedOver) {
  v1::TrialResult result;
  result.set_passed_over("the recording has no such variant");
  const v1::Iteration iteration = Judged(result);
  EXPECT_EQ(iteration.verdict(), v1::REJECTED);
  EXPECT_EQ(iteration.reason(), "passed over: the recording has no such variant");
  EXPECT_FALSE(iteration.has_failure());
}

TEST_F(JudgeTest, MultipliesSpeedupsAlongTheWay) {
  script_.Lease(2);
  script_.Finish(2, Measured(100, 80));
  // The GPU is slower today: times drift, ratios do not.
  const v1::Iteration iteration = script_.Run(Measured(88, 44));
  EXPECT_EQ(iteration.parent(), 1);
  EXPECT_NEAR(iteration.speedup_over_parent(), 2, 0.01);
  EXPECT_NEAR(iteration.speedup_over_start(), 2.5, 0.01);
  EXPECT_NEAR(iteration.speedup_over_baseline(), 2.5, 0.01) << "the start is the baseline";
}

TEST(JudgeStartTest, KeepsAStartThatPassed) {
  CampaignScript script;
  const v1::Iteration iteration = script.Run(MeasuredStart(100));
  EXPECT_EQ(iteration.verdict(), v1::KEPT);
  EXPECT_EQ(iteration.speedup_over_start(), 1);
  EXPECT_EQ(iteration.speedup_over_baseline(), 1);
  EXPECT_EQ(iteration.speedup_over_parent(), 0);
  EXPECT_FALSE(iteration.has_parent());
}

TEST(JudgeStartTest, ComparesWithTheBaselineAtTheGoalsSize) {
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  for (const auto& [size, us] : {std::pair("small", 1.0), std::pair("main", 150.0)}) {
    v1::BaselineTime& baseline = *start.add_baselines();
    baseline.set_size(size);
    baseline.set_graph_us(us);
  }
  EXPECT_NEAR(script.Run(start).speedup_over_baseline(), 1.5, 1e-9);
  EXPECT_NEAR(script.Run(Measured(100, 50)).speedup_over_baseline(), 3, 0.01);
}

TEST(JudgeStartTest, TakesNoBaselineFromALaterTrial) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  v1::TrialResult result = Measured(100, 90);
  v1::BaselineTime& baseline = *result.add_baselines();
  baseline.set_size("main");
  baseline.set_graph_us(100'000);
  EXPECT_NEAR(script.Run(result).speedup_over_baseline(), 1.11, 0.01);
}

TEST(JudgeStartTest, DecidesByColdTimesWhereTheBundleSaysSo) {
  v1::Bundle bundle = TinyBundle();
  bundle.set_timing(v1::TIMING_MODE_COLD);
  CampaignScript script({}, bundle);
  EXPECT_EQ(script.Run(MeasuredStart(100)).time_us(), 200);
  const v1::Iteration iteration = script.Run(Measured(100, 80));
  EXPECT_EQ(iteration.time_us(), 160);
  EXPECT_EQ(iteration.parent_time_us(), 200);
}

TEST(PutAsideTest, SaysHowManyWorkersItCost) {
  CampaignScript script;
  const std::optional<v1::Event> planned = script.Decide();
  const v1::Iteration iteration = PutAside(script.state(), planned->planned(), 3);
  EXPECT_EQ(iteration.verdict(), v1::REJECTED);
  EXPECT_EQ(iteration.number(), 0);
  EXPECT_EQ(iteration.reason(), "put aside: 3 workers were lost while running it");
}

class VerificationTest : public ::testing::Test {
 protected:
  VerificationTest() {
    recorded_.set_number(4);
    recorded_.set_parent(2);
    recorded_.set_time_us(80);
    recorded_.set_speedup_over_parent(1.25);
    recorded_.set_device("NVIDIA H200");
    recorded_.mutable_gpu()->set_driver_version("580.1");
    recorded_.mutable_toolchain()->set_nvrtc("13.0");
    recorded_.set_cubin_hash("abc");
  }
  v1::TrialResult Again(double parent_us, double us) {
    v1::TrialResult result = Measured(parent_us, us);
    result.mutable_gpu()->set_driver_version("580.1");
    result.mutable_toolchain()->set_nvrtc("13.0");
    result.set_cubin_hash("abc");
    return result;
  }
  v1::Verification Verified(const v1::TrialResult& result) { return Compare(recorded_, result, TinyBundle()); }
  v1::Iteration recorded_;
};

TEST_F(VerificationTest, AgreesWithinTenPercent) {
  const v1::Verification verification = Verified(Again(101, 84));
  EXPECT_TRUE(verification.agrees());
  EXPECT_TRUE(verification.same_code());
  EXPECT_EQ(verification.iteration(), 4);
  EXPECT_EQ(verification.recorded_us(), 80);
  EXPECT_EQ(verification.measured_us(), 84);
  EXPECT_EQ(verification.recorded_speedup(), 1.25);
  EXPECT_NEAR(verification.measured_speedup(), 1.202, 0.001);
  EXPECT_EQ(verification.differences_size(), 0);
  EXPECT_EQ(verification.text(),
            "84.000 us now, 80.000 us recorded (+5.0 %); 1.202x over its parent now, 1.250x recorded");
}

TEST_F(VerificationTest, DisagreesWhenTheTimeIsOffAndSaysWhatDiffers) {
  v1::TrialResult result = Again(125, 100);
  result.mutable_gpu()->set_driver_version("590.2");
  result.set_cubin_hash("def");
  const v1::Verification verification = Verified(result);
  EXPECT_FALSE(verification.agrees());
  EXPECT_FALSE(verification.same_code());
  ASSERT_EQ(verification.differences_size(), 1);
  EXPECT_EQ(verification.differences(0), "driver: 580.1 recorded, 590.2 now");
  EXPECT_THAT(verification.text(), HasSubstr("driver: 580.1 recorded, 590.2 now"));
}

TEST_F(VerificationTest, DisagreesWhenTheGainIsGone) {
  EXPECT_FALSE(Verified(Again(80, 80)).agrees());
  v1::TrialResult no_pairs = Again(100, 80);
  no_pairs.clear_pairs();
  EXPECT_FALSE(Verified(no_pairs).agrees());
}

TEST_F(VerificationTest, NeedsOnlyTheTimeOfAStartVariant) {
  recorded_.clear_parent();
  recorded_.clear_speedup_over_parent();
  EXPECT_TRUE(Verified(MeasuredStart(85)).agrees());
  EXPECT_FALSE(Verified(MeasuredStart(95)).agrees());
}

TEST_F(VerificationTest, DoesNotCallUnknownCodeTheSame) {
  recorded_.clear_cubin_hash();
  v1::TrialResult result = Again(100, 80);
  result.clear_cubin_hash();
  EXPECT_TRUE(Verified(result).agrees());
  EXPECT_FALSE(Verified(result).same_code());
}

TEST_F(VerificationTest, DisagreesWhenItCannotBeMeasured) {
  const v1::Verification failed = Verified(FailedCheck(v1::CHECK_COMPILE, "no such header"));
  EXPECT_FALSE(failed.agrees());
  EXPECT_THAT(failed.text(), HasSubstr("no such header"));
  v1::TrialResult passed_over;
  passed_over.set_passed_over("not recorded");
  EXPECT_THAT(Verified(passed_over).text(), HasSubstr("not recorded"));
  v1::TrialResult no_time = Again(100, 80);
  no_time.set_warm_us(0);
  EXPECT_FALSE(Verified(no_time).agrees());
}

TEST(GateTest, NamesTheGateThatAFailureStandsFor) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  const v1::Iteration iteration = script.Run(FailedCheck(v1::CHECK_RACECHECK, "a race"));
  ASSERT_EQ(iteration.failed_gates_size(), 1);
  EXPECT_EQ(iteration.failed_gates(0).gate(), "sanitizer");
  EXPECT_EQ(iteration.failed_gates(0).action(), v1::GATE_ACTION_REJECT);
  EXPECT_EQ(iteration.verdict(), v1::REJECTED);
}

TEST(GateTest, MarksWhatShouldHaveBeenProfiled) {
  for (const auto& [baseline_us, gate] :
       {std::pair(40.0, "profile-first"), std::pair(80.0, "profile"), std::pair(120.0, "")}) {
    CampaignScript script;
    v1::TrialResult start = MeasuredStart(100);
    start.set_profiled(false);
    start.add_baselines()->set_size("main");
    start.mutable_baselines(0)->set_graph_us(baseline_us);
    const v1::Iteration iteration = script.Run(start);
    EXPECT_EQ(iteration.verdict(), v1::KEPT);
    EXPECT_EQ(iteration.failed_gates_size() > 0 ? iteration.failed_gates(0).gate() : "", gate) << baseline_us;
    start.set_profiled(true);
    CampaignScript profiled;
    EXPECT_EQ(profiled.Run(start).failed_gates_size(), 0);
  }
}

TEST(GateTest, MarksAPredictionThatFailed) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  v1::Event planned = *script.Decide();
  for (const auto& [us, marked] : {std::pair(99.0, true), std::pair(70.0, false)}) {
    v1::TrialPlanned plan = planned.planned();
    plan.mutable_finding()->set_rule("grid-too-small");
    plan.mutable_prediction()->set_low(1.2);
    plan.mutable_prediction()->set_high(2);
    const v1::Iteration iteration = Judge(script.state(), plan, Measured(100, us));
    EXPECT_EQ(iteration.prediction().outcome(), marked ? v1::Prediction::FAILED : v1::Prediction::CAME_TRUE);
    ASSERT_EQ(iteration.failed_gates_size(), marked ? 1 : 0);
    if (marked) {
      EXPECT_EQ(iteration.failed_gates(0).gate(), "prediction");
    }
  }
}

TEST(GateTest, DoesWhatItsActionSays) {
  const auto with = [](const std::string& gate, const std::string& action) {
    std::string toml(embedded::kGatesToml);
    const size_t name = toml.find("= \"" + gate + "\"");
    const size_t from = toml.find('"', toml.find("action", name)), to = toml.find('"', from + 1);
    return Gates::Parse(toml.replace(from, to - from + 1, "\"" + action + "\""), "gates.toml").value();
  };
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  start.set_baseline_error("no torch here");
  const v1::TrialPlanned first = script.Decide()->planned();
  const v1::Iteration paused = Judge(script.state(), first, start);
  EXPECT_EQ(paused.verdict(), v1::KEPT);
  EXPECT_EQ(paused.failed_gates(0).gate(), "baseline");
  EXPECT_EQ(paused.failed_gates(0).action(), v1::GATE_ACTION_PAUSE);
  EXPECT_THAT(paused.failed_gates(0).text(), HasSubstr("no torch here"));
  EXPECT_EQ(Judge(script.state(), first, start, with("baseline", "reject")).verdict(), v1::REJECTED);

  script.Lease(1);
  script.Finish(1, MeasuredStart(100));
  v1::TrialPlanned plan = script.Decide()->planned();
  plan.mutable_finding()->set_rule("grid-too-small");
  plan.mutable_prediction()->set_low(2);
  plan.mutable_prediction()->set_high(3);
  EXPECT_EQ(Judge(script.state(), plan, Measured(100, 80)).verdict(), v1::KEPT) << "it is marked only";
  const v1::Iteration reverted = Judge(script.state(), plan, Measured(100, 80), with("prediction", "revert"));
  EXPECT_EQ(reverted.verdict(), v1::REVERTED);
  EXPECT_THAT(reverted.reason(),
              HasSubstr("the prediction of grid-too-small failed: 1.25x over the parent (predicted 2.00x to 3.00x)"));
  EXPECT_EQ(Judge(script.state(), plan, Measured(100, 80), with("prediction", "pause")).verdict(), v1::REVERTED);
}

TEST(TotalGainTest, IsWhatThePairsSay) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  v1::TrialPlanned planned;
  planned.set_iteration(1);
  EXPECT_NEAR(JudgeTotal(script.state(), planned, Measured(100, 50)).speedup_over_start(), 2, 0.001);
  EXPECT_NEAR(JudgeTotal(script.state(), planned, Measured(100, 50)).multiplied(), 1.25, 0.001);
  EXPECT_EQ(JudgeTotal(script.state(), planned, v1::TrialResult()).speedup_over_start(), 0);
}

TEST(TotalGainTest, HasTheTimesOfItsRatioAtTheGoalsSize) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  v1::TrialPlanned planned;
  planned.set_iteration(1);
  v1::TrialResult result = Measured(100, 50);
  for (const char* name : {"main", "small"}) {  // as the ladder timed them, later
    v1::SizeTime& size = *result.add_sizes();
    size.set_size(name);
    size.set_start_us(90);
    size.set_best_us(40);
  }
  const v1::TotalGain total = JudgeTotal(script.state(), planned, result);
  EXPECT_NEAR(total.sizes(0).best_us(), 50, 0.1);
  EXPECT_DOUBLE_EQ(total.sizes(0).start_us() / total.sizes(0).best_us(), total.speedup_over_start());
  EXPECT_EQ(total.sizes(1).start_us(), 90);
  EXPECT_EQ(total.sizes(1).best_us(), 40);
}

TEST(TotalGainTest, HasBoundsOfTheRatioToTheBaseline) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  v1::TrialPlanned planned;
  planned.set_iteration(1);
  v1::TrialResult result = Measured(100, 80);
  EXPECT_FALSE(JudgeTotal(script.state(), planned, result).has_beside_baseline());
  v1::BesideBaseline& beside = *result.mutable_beside_baseline();
  beside.set_baseline_us(160);
  for (const double noise : {-0.02, 0.0, 0.02}) beside.add_log_ratios(std::log(2) + noise);
  beside.mutable_interval()->set_mean_log_ratio(7);  // whatever a worker says
  const v1::BesideBaseline judged = JudgeTotal(script.state(), planned, result).beside_baseline();
  EXPECT_EQ(judged.baseline_us(), 160);
  EXPECT_NEAR(judged.interval().mean_log_ratio(), std::log(2), 1e-12);
  EXPECT_NEAR(judged.interval().upper() - std::log(2), 9.9248 * 0.02 / std::sqrt(3), 1e-5) << "t of 2 degrees, 99 %";
  EXPECT_EQ(judged.interval().pairs(), 3);

  beside.clear_log_ratios();
  beside.set_error("no torch");
  EXPECT_EQ(JudgeTotal(script.state(), planned, result).beside_baseline().error(), "no torch");
  EXPECT_FALSE(JudgeTotal(script.state(), planned, result).beside_baseline().has_interval());
}

}  // namespace
}  // namespace pawl
