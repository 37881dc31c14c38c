#include "orchestrator/engine/state/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/revision/revision.h"
#include "orchestrator/engine/search/chooser.h"
#include "report/sentences.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CampaignTest, WaitsAfterItsSubmission) {
  CampaignScript script;
  EXPECT_EQ(script.summary().name(), "campaigns/7");
  EXPECT_EQ(script.summary().state(), v1::WAITING);
  EXPECT_EQ(script.summary().bundle(), "tiny");
  EXPECT_EQ(script.summary().bundle_hash(), "the bundle's hash");
  EXPECT_EQ(script.state().space_hash(), "the space's hash");
  EXPECT_EQ(script.summary().spec().goal().size(), "main");
  EXPECT_EQ(TimeOf(script.summary().create_time()), script.now());
  EXPECT_FALSE(script.state().ended());
  EXPECT_TRUE(script.state().leasable());
  EXPECT_EQ(script.state().best(), nullptr);
  EXPECT_EQ(script.state().next_trial(), 1);
  EXPECT_EQ(script.state().next_iteration(), 0);
}

TEST(CampaignTest, CountsVerdictsAndKnowsTheBest) {
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  v1::BaselineTime& baseline = *start.add_baselines();
  baseline.set_size("main");
  baseline.set_graph_us(50);
  baseline.set_what("torch");
  start.add_baselines()->set_size("small");
  script.Run(start);
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 90));
  script.Run(FailedCheck(v1::CHECK_TOLERANCE, "wrong"));
  const v1::Campaign& summary = script.summary();
  EXPECT_EQ(summary.state(), v1::RUNNING);
  EXPECT_EQ(summary.counts().tried(), 3);
  EXPECT_EQ(summary.counts().kept(), 1) << "the start is no change";
  EXPECT_EQ(summary.counts().reverted(), 1);
  EXPECT_EQ(summary.counts().rejected(), 1);
  EXPECT_EQ(summary.best(), 1);
  EXPECT_EQ(summary.start_us(), 100);
  EXPECT_EQ(summary.best_us(), 80);
  EXPECT_EQ(summary.baseline_us(), 50);
  EXPECT_EQ(summary.baseline(), "torch");
  EXPECT_NEAR(summary.speedup_over_start(), 1.25, 0.001);
  EXPECT_NEAR(summary.speedup_over_baseline(), 0.625, 0.001);
  EXPECT_EQ(summary.device(), "NVIDIA H200");
  EXPECT_EQ(script.state().best()->number(), 1);
  EXPECT_EQ(script.state().reverts_in_a_row(), 2);
  ASSERT_EQ(script.state().iterations().size(), 4u);
  EXPECT_EQ(script.state().Find(2)->verdict(), v1::REVERTED);
  EXPECT_EQ(script.state().Find(4), nullptr);
}

TEST(CampaignTest, KeepsTheEvidenceOfWhatIsKept) {
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  start.mutable_evidence()->add_launches()->set_entry("of the start");
  script.Run(start);
  v1::TrialResult slower = Measured(100, 120);
  slower.mutable_evidence()->add_launches()->set_entry("of a slower one");
  script.Run(slower);
  EXPECT_EQ(script.state().best_evidence().launches(0).entry(), "of the start");
  v1::TrialResult faster = Measured(100, 60);
  faster.mutable_evidence()->add_launches()->set_entry("of a faster one");
  script.Run(faster);
  EXPECT_EQ(script.state().best_evidence().launches(0).entry(), "of a faster one");
  EXPECT_EQ(script.state().EvidenceOf(0)->launches(0).entry(), "of the start");
  EXPECT_EQ(script.state().EvidenceOf(1), nullptr);
}

TEST(CampaignTest, KeepsTheBestOfARoundWhateverEndsLast) {
  for (const bool better_first : {true, false}) {
    CampaignScript script;
    script.Run(MeasuredStart(100));
    ASSERT_TRUE(script.Decide(NeighbourChooser(), 2));
    ASSERT_TRUE(script.Decide(NeighbourChooser(), 2)) << "two at once";
    EXPECT_FALSE(script.Decide(NeighbourChooser(), 2)) << "no more than two";
    EXPECT_EQ(script.state().open_trials().at(2).planned.parent(), 0);
    EXPECT_EQ(script.state().open_trials().at(3).planned.parent(), 0);
    script.Lease(2);
    script.Lease(3);
    if (better_first) {
      script.Finish(3, Measured(100, 50));
      EXPECT_FALSE(script.Decide(NeighbourChooser(), 1)) << "there is one worker less";
      const v1::Iteration late = script.Finish(2, Measured(100, 80));
      EXPECT_EQ(late.verdict(), v1::REVERTED);
      EXPECT_NE(late.reason().find("iteration 2 of the same round gained more"), std::string::npos) << late.reason();
    } else {
      script.Finish(2, Measured(100, 80));
      EXPECT_EQ(script.Finish(3, Measured(100, 50)).verdict(), v1::KEPT);
    }
    EXPECT_EQ(script.summary().best(), 2);
    EXPECT_EQ(script.summary().best_us(), 50);
    EXPECT_EQ(script.state().Find(1)->time_us(), 80);
    const std::optional<v1::Event> next = script.Decide(NeighbourChooser(), 2);
    ASSERT_TRUE(next && next->has_planned());
    EXPECT_EQ(next->planned().parent(), 2);
  }
}

void PlanTotal(CampaignScript* script, int iteration) {
  v1::Event planned;
  planned.mutable_planned()->set_trial(script->state().next_trial());
  planned.mutable_planned()->set_purpose(v1::TRIAL_PURPOSE_TOTAL);
  planned.mutable_planned()->set_iteration(iteration);
  planned.mutable_planned()->set_parent(0);
  script->Apply(planned);
}

// A worker that is free does not wait for the others.
TEST(CampaignTest, PlansFromTheBestWhileOthersMeasure) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(script.Decide(NeighbourChooser(), 2));
  for (const int trial : {2, 3}) script.Lease(trial);
  script.Finish(3, Measured(100, 120));
  const std::optional<v1::Event> beside = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(beside && beside->has_planned());
  EXPECT_EQ(beside->planned().parent(), 0) << "the best as yet";
  script.Lease(4);
  script.Finish(4, Measured(100, 80));
  const std::optional<v1::Event> next = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(next && next->has_planned());
  EXPECT_EQ(next->planned().parent(), 3);
  EXPECT_EQ(script.state().reverts_in_a_row(), 0);
  EXPECT_EQ(script.Finish(2, Measured(100, 90)).verdict(), v1::REVERTED) << "a change of the same parent gained more";
  EXPECT_EQ(script.state().reverts_in_a_row(), 0) << "another was kept meanwhile";
  EXPECT_EQ(script.summary().best(), 3);
}

// While trial 2 (iteration 1, of the start) is open, iteration 2 and its child 3 are kept: the best takes 40 us.
void Overtake(CampaignScript* script) {
  script->Run(MeasuredStart(100));
  for (int i = 0; i < 2; ++i) script->Decide(NeighbourChooser(), 2);
  for (const int trial : {2, 3}) script->Lease(trial);
  script->Finish(3, Measured(100, 80));
  script->Decide(NeighbourChooser(), 2);
  script->Lease(4);
  script->Finish(4, Measured(80, 40));
}

// What was measured beside a parent that is no longer the best is kept only after a comparison with the best.
TEST(CampaignTest, ComparesWhatWasOvertakenWithTheBest) {
  for (const double us : {30.0, 60.0}) {
    CampaignScript script;
    Overtake(&script);
    ASSERT_EQ(script.summary().best(), 3);
    const v1::Iteration late = script.Finish(2, Measured(100, us));
    EXPECT_EQ(late.verdict(), v1::REVERTED) << late.reason();
    EXPECT_TRUE(late.expedition());
    EXPECT_EQ(AwaitsComparison(late), us < 40);
    EXPECT_NE(late.reason().find("another was kept meanwhile"), std::string::npos) << late.reason();
    const std::optional<v1::Event> next = script.Decide(NeighbourChooser(), 2);
    ASSERT_TRUE(next && next->has_planned());
    if (us > 40) {
      EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_ITERATION) << "it is slower";
      continue;
    }
    EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_END);
    EXPECT_EQ(next->planned().iteration(), 1);
    EXPECT_EQ(next->planned().parent(), 3);
    const std::optional<v1::Event> beside = script.Decide(NeighbourChooser(), 2);
    ASSERT_TRUE(beside && beside->has_planned()) << "the other worker goes on";
    EXPECT_EQ(beside->planned().purpose(), v1::TRIAL_PURPOSE_ITERATION);
    EXPECT_FALSE(script.Decide(NeighbourChooser(), 2)) << "no more than two";
  }
}

// What is kept while the end of an expedition is compared with the best is the best afterwards.
TEST(CampaignTest, ComparesAnEndThatWasOvertakenAgain) {
  for (const double us : {30.0, 38.0}) {
    CampaignScript script;
    Overtake(&script);
    script.Finish(2, Measured(100, 30));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(script.Decide(NeighbourChooser(), 2));
    for (const int trial : {5, 6}) script.Lease(trial);
    script.Finish(6, Measured(40, 35));
    ASSERT_EQ(script.summary().best(), 4);
    const v1::Iteration end = script.Finish(5, Measured(40, us));
    EXPECT_EQ(end.verdict(), v1::REVERTED);
    EXPECT_NE(end.reason().find("iteration 4 was kept meanwhile"), std::string::npos) << end.reason();
    EXPECT_EQ(script.summary().best(), 4);
    const std::optional<v1::Event> next = script.Decide(NeighbourChooser(), 1);
    ASSERT_TRUE(next && next->has_planned());
    EXPECT_EQ(next->planned().purpose(), us < 35 ? v1::TRIAL_PURPOSE_END : v1::TRIAL_PURPOSE_ITERATION);
    if (us > 35) continue;
    EXPECT_EQ(next->planned().parent(), 4);
    script.Lease(7);
    EXPECT_EQ(script.Finish(7, Measured(35, 30)).verdict(), v1::KEPT);
    EXPECT_EQ(script.summary().best(), 1);
    EXPECT_EQ(script.state().BuiltOn(3), (std::set<int>{1, 3, 4}))
        << "1 was judged before 4, which it was kept for beating";
    EXPECT_TRUE(IsProduct(*script.state().Find(1))) << "though its parent is the start";
  }
}

TEST(CampaignTest, ComparesAnEndAgainWhoseRivalWasTakenBack) {
  CampaignScript script;
  Overtake(&script);
  script.Finish(2, Measured(100, 30));
  const std::optional<v1::Event> end = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(end && end->planned().purpose() == v1::TRIAL_PURPOSE_END);
  script.Lease(end->planned().trial());
  PlanTotal(&script, 3);
  script.FinishTotal(Measured(100, 120));
  ASSERT_EQ(script.state().Find(3)->verdict(), v1::REVERTED);
  ASSERT_EQ(script.summary().best(), 2);
  const v1::Iteration unsettled = script.Finish(end->planned().trial(), Measured(40, 30));
  EXPECT_EQ(unsettled.verdict(), v1::REVERTED);
  EXPECT_NE(unsettled.reason().find("taken back meanwhile"), std::string::npos) << unsettled.reason();
  const std::optional<v1::Event> again = script.Decide(NeighbourChooser(), 1);
  ASSERT_TRUE(again && again->has_planned());
  EXPECT_EQ(again->planned().purpose(), v1::TRIAL_PURPOSE_END);
  EXPECT_EQ(again->planned().parent(), 2);
}

TEST(CampaignTest, ComparesWhatLostToOneThatWasTakenBack) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(script.Decide(NeighbourChooser(), 2));
  for (const int trial : {2, 3}) script.Lease(trial);
  script.Finish(3, Measured(100, 50));
  ASSERT_EQ(script.Finish(2, Measured(100, 80)).verdict(), v1::REVERTED);
  PlanTotal(&script, 2);
  script.FinishTotal(Measured(100, 120));
  ASSERT_EQ(script.summary().best(), 0);
  const std::optional<v1::Event> next = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(next && next->has_planned());
  EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_END);
  EXPECT_EQ(next->planned().iteration(), 1);
}

TEST(CampaignTest, KnowsTheIterationOfAVariantThatWasOvertaken) {
  CampaignScript script;
  Overtake(&script);
  const v1::Iteration late = script.Finish(2, Measured(100, 60));
  EXPECT_EQ(script.state().FindSame(0, VariantOf(late)), 1);
}

TEST(CampaignTest, CountsWhatIsKeptWhileATotalIsMeasured) {
  CampaignScript script;
  Overtake(&script);
  ASSERT_EQ(script.state().kept_since_total(), 2);
  PlanTotal(&script, 3);
  ASSERT_TRUE(script.Decide(NeighbourChooser(), 3));
  script.Lease(6);
  ASSERT_EQ(script.Finish(6, Measured(40, 30)).verdict(), v1::KEPT);
  script.FinishTotal(Measured(100, 40));
  EXPECT_EQ(script.state().kept_since_total(), 1);
}

// One that was kept by a comparison with the best gained something else than its step beside the parent says.
TEST(CampaignTest, KeepsNothingForGainingMoreThanTheStepOfAnEnd) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(script.Decide(NeighbourChooser(), 3));
  for (const int trial : {2, 3, 4}) script.Lease(trial);
  script.Finish(2, Measured(100, 95));
  ASSERT_TRUE(script.Decide(NeighbourChooser(), 3));
  script.Lease(5);
  script.Finish(5, Measured(95, 87));
  script.Finish(3, Measured(100, 83));
  const std::optional<v1::Event> end = script.Decide(NeighbourChooser(), 3);
  ASSERT_TRUE(end && end->planned().purpose() == v1::TRIAL_PURPOSE_END);
  script.Lease(end->planned().trial());
  ASSERT_EQ(script.Finish(end->planned().trial(), Measured(87, 79)).verdict(), v1::KEPT);
  ASSERT_EQ(script.summary().best(), 2);
  const v1::Iteration late = script.Finish(4, Measured(100, 82));
  EXPECT_EQ(late.verdict(), v1::REVERTED) << late.reason();
  EXPECT_EQ(script.summary().best(), 2);
}

TEST(CampaignTest, GoesByTheTotalGainAsMeasured) {
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  start.add_baselines()->set_size("main");
  start.mutable_baselines(0)->set_graph_us(50);
  script.Run(start);
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 64));
  EXPECT_NEAR(script.summary().speedup_over_start(), 1.5625, 0.001);
  PlanTotal(&script, 2);
  const v1::TotalGain total = script.FinishTotal(Measured(100, 70));
  EXPECT_NEAR(total.speedup_over_start(), 1.4286, 0.001);
  EXPECT_NEAR(total.multiplied(), 1.5625, 0.001);
  EXPECT_EQ(script.summary().counts().tried(), 2) << "it is no iteration";
  EXPECT_NEAR(script.summary().speedup_over_start(), 1.4286, 0.001);
  EXPECT_NEAR(script.summary().speedup_over_baseline(), 1.4286 / 2, 0.001);
  EXPECT_NEAR(script.state().Find(1)->speedup_over_start(), 1.25, 0.001) << "it was compared with the start itself";
  const v1::Iteration next = script.Run(Measured(64, 32));
  EXPECT_NEAR(next.speedup_over_start(), 2 * 1.4286, 0.001) << "what is built on it goes by it too";
}

TEST(CampaignTest, ATotalRevisesItsIterationOnceInWhateverOrderTheyWereJudged) {
  std::vector<v1::Iteration> iterations;
  for (const int number : {0, 1, 5, 3}) {
    v1::Iteration& iteration = iterations.emplace_back();
    iteration.set_number(number);
    iteration.set_verdict(v1::KEPT);
    if (number > 0) iteration.set_parent(number > 1 ? 1 : 0);
    iteration.set_speedup_over_start(1 + number);
    iteration.set_speedup_over_baseline(1 + number);
  }
  v1::TotalGain total;
  total.set_iteration(3);
  total.set_speedup_over_start(5);
  total.set_multiplied(4);
  total.mutable_beside_baseline()->mutable_interval()->set_pairs(24);
  total.mutable_beside_baseline()->mutable_interval()->set_mean_log_ratio(std::log(4.5));
  std::map<int, std::vector<double>> ratios;  // over the baseline, by iteration
  for (const v1::RevisedIteration& revised : RevisedBy(total, iterations)) {
    ratios[revised.number()].push_back(revised.speedup_over_baseline());
  }
  ASSERT_EQ(ratios[3].size(), 1u);
  EXPECT_DOUBLE_EQ(ratios[3][0], 4.5) << "as measured";
  ASSERT_EQ(ratios[5].size(), 1u);
  EXPECT_DOUBLE_EQ(ratios[5][0], 6 * 1.25);
}

TEST(CampaignTest, ASecondTotalSaysWhatWasEstimatedAfterTheFirst) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 64));
  PlanTotal(&script, 2);
  EXPECT_THAT(TotalGainText(script.FinishTotal(Measured(100, 70))), HasSubstr("estimated from the steps: 1.562x"));
  script.Run(Measured(64, 32));  // the product of the steps is 3.125 now
  PlanTotal(&script, 3);
  const std::string text = TotalGainText(script.FinishTotal(Measured(100, 40)));
  EXPECT_THAT(text, HasSubstr("against the start: 2.500x"));
  EXPECT_THAT(text, HasSubstr("estimated from the steps: 2.857x"));
  EXPECT_THAT(text, Not(HasSubstr("product")));
}

TEST(CampaignTest, TheBestIterationHasTheRatioThatWasMeasuredBesideTheBaseline) {
  CampaignScript script;
  v1::TrialResult start = MeasuredStart(100);
  start.add_baselines()->set_size("main");
  start.mutable_baselines(0)->set_graph_us(50);
  script.Run(start);
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 64));
  PlanTotal(&script, 2);
  v1::TrialResult result = Measured(100, 70);
  for (const double noise : {-0.01, 0.0, 0.01}) {
    result.mutable_beside_baseline()->add_log_ratios(std::log(0.75) + noise);
  }
  script.FinishTotal(result);
  EXPECT_NEAR(script.summary().speedup_over_baseline(), 0.75, 1e-9);
  EXPECT_EQ(script.state().Find(2)->speedup_over_baseline(), script.summary().speedup_over_baseline());
  EXPECT_NEAR(script.state().Find(2)->speedup_over_start(), 1.4286, 0.001);
  EXPECT_NEAR(script.state().Find(1)->speedup_over_baseline(), 0.625, 0.001) << "it was not timed beside the baseline";

  // An event from before this: the summary has the ratio, the iteration keeps its own.
  std::vector<v1::Event> events = script.events();
  for (v1::Event& event : events) {
    if (!event.finished().has_total_gain()) continue;
    event.mutable_finished()->clear_revised();
  }
  CampaignState old("campaigns/7", TinyBundle());
  for (const v1::Event& event : events) old.Apply(event);
  EXPECT_NEAR(old.summary().speedup_over_baseline(), 0.75, 1e-9);
  EXPECT_NEAR(old.Find(2)->speedup_over_baseline(), 1.4286 / 2, 0.001);
}

TEST(CampaignTest, ItsClockRunsFromTheFirstLeaseAndNotInPauses) {
  CampaignScript script;
  script.Decide();
  script.Pass(absl::Minutes(5));
  EXPECT_EQ(script.state().Running(script.now()), absl::ZeroDuration()) << "nobody has leased it";
  script.Pause();
  script.Pass(absl::Minutes(5));
  script.Resume();
  EXPECT_EQ(script.summary().state(), v1::WAITING);
  script.Pass(absl::Minutes(5));
  EXPECT_EQ(script.state().Running(script.now()), absl::ZeroDuration());
  script.Lease(1);
  script.Pass(absl::Minutes(3));
  EXPECT_EQ(script.state().Running(script.now()), absl::Minutes(3));
  script.Pause();
  script.Pass(absl::Minutes(60));
  EXPECT_EQ(script.state().Running(script.now()), absl::Minutes(3));
  script.Resume();
  script.Pass(absl::Minutes(4));
  EXPECT_EQ(script.state().Running(script.now()), absl::Minutes(7));
  script.Lose(1, v1::LeaseLost::GIVEN_BACK);
  script.Lease(1, 2);
  script.Pass(absl::Minutes(1));
  EXPECT_EQ(script.state().Running(script.now()), absl::Minutes(8)) << "a second lease does not set it back";
  script.End(v1::FINISHED, v1::STOP_REASON_GOAL);
  script.Pass(absl::Hours(1));
  EXPECT_EQ(script.state().Running(script.now()), absl::Minutes(8));
}

TEST(CampaignTest, SaysWhyItIsPausedUntilItGoesOn) {
  CampaignScript script;
  script.Decide();
  script.Lease(1);
  script.Pause("the GPU is needed");
  EXPECT_EQ(script.summary().message(), "the GPU is needed");
  EXPECT_FALSE(script.state().leasable());
  script.Finish(1, MeasuredStart(100));
  EXPECT_EQ(script.state().iterations().size(), 1u) << "what was leased before still counts";
  EXPECT_EQ(script.summary().state(), v1::PAUSED);
  script.Resume();
  EXPECT_EQ(script.summary().message(), "");
  EXPECT_EQ(script.summary().state(), v1::RUNNING);
}

TEST(CampaignTest, KnowsWhoHoldsATrialAndHowItWasLost) {
  CampaignScript script;
  script.Decide();
  EXPECT_EQ(script.state().open_trials().at(1).attempt, 0);
  script.Lease(1);
  EXPECT_EQ(script.state().open_trials().at(1).worker, "workers/a");
  script.Lose(1, v1::LeaseLost::EXPIRED);
  script.Lease(1, 2);
  script.Lose(1, v1::LeaseLost::HOST_FAULT);
  script.Lease(1, 3);
  script.Lose(1, v1::LeaseLost::GIVEN_BACK);
  const OpenTrial& open = script.state().open_trials().at(1);
  EXPECT_EQ(open.worker, "");
  EXPECT_EQ(open.attempt, 3);
  EXPECT_EQ(open.killed, 1);
  EXPECT_EQ(open.host_faults, 1);
  script.Lease(1, 4);
  script.Finish(1, MeasuredStart(100));
  EXPECT_TRUE(script.state().open_trials().empty());
}

TEST(CampaignTest, PaysForTheTimeOfItsTrials) {
  CampaignScript script;
  script.Decide();
  script.Lease(1, 1, /*price_per_hour=*/3.6);
  script.Finish(1, MeasuredStart(100));
  EXPECT_EQ(script.summary().gpu_seconds(), 2);
  EXPECT_NEAR(script.summary().dollars(), 0.002, 1e-9);
}

TEST(CampaignTest, SaysHowBusyTheGpuWas) {
  CampaignScript script;
  script.Decide();
  script.Lease(1);
  EXPECT_EQ(script.summary().gpu_busy(), 0);
  v1::TrialResult result = MeasuredStart(100);  // 2 s of measuring
  v1::StageTime& build = *result.add_stages();
  build.set_stage(v1::STAGE_BUILD);
  build.set_seconds(3);
  script.Pass(absl::Seconds(8));
  script.Finish(1, result);
  EXPECT_NEAR(script.summary().gpu_busy(), 0.25, 1e-9) << "building needs no GPU";
  script.Pass(absl::Seconds(2));
  script.Run(Measured(100, 80));
  EXPECT_NEAR(script.summary().gpu_busy(), 0.4, 1e-9);
}

TEST(CampaignTest, DoesNotSayHowBusyTheGpuOfARecordingWas) {
  CampaignScript script;
  script.Decide();
  v1::Event leased;
  leased.mutable_leased()->set_trial(1);
  leased.mutable_leased()->set_worker("workers/fast");
  leased.mutable_leased()->set_device("replay of an NVIDIA H200");
  leased.mutable_leased()->set_replay(true);
  script.Apply(leased);
  script.Pass(absl::Seconds(1));
  script.Finish(1, MeasuredStart(100));
  EXPECT_EQ(script.summary().gpu_busy(), 0);
}

TEST(CampaignTest, RemembersProposalsUntilTheyArePlanned) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("SPLIT", 2);
  script.Propose("SPLIT", 2, "bob");
  script.Propose("TILE", 16);
  ASSERT_EQ(script.state().proposals().size(), 3u);
  EXPECT_EQ(script.state().proposals()[0].proposed.author(), "ann");
  script.Run(Measured(100, 120));
  ASSERT_EQ(script.state().proposals().size(), 1u) << "the same from two people is tried once";
  EXPECT_EQ(script.state().proposals()[0].proposed.change().variable(), "TILE");
}

TEST(CampaignTest, DropsProposalsThatCanNoLongerBeTried) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("TILE", 64);
  script.Propose("SPLIT", 4);
  script.Propose("SPLIT", 2);
  script.Run(Measured(100, 80));  // TILE=64 is the best now: SPLIT=4 is forbidden beside it
  script.Run(Measured(80, 90));
  EXPECT_EQ(script.state().Find(2)->change().to(), 2);
  EXPECT_TRUE(script.state().proposals().empty());
}

TEST(CampaignTest, DropsOpenTrialsAndProposalsWhenItIsCancelled) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Decide();
  script.Propose("TILE", 16);
  script.Lease(2);
  script.End(v1::CANCELLED, v1::STOP_REASON_CANCELLED);
  EXPECT_TRUE(script.state().ended());
  EXPECT_TRUE(script.state().open_trials().empty());
  EXPECT_TRUE(script.state().proposals().empty());
  EXPECT_EQ(script.summary().stop_reason(), v1::STOP_REASON_CANCELLED);
  EXPECT_EQ(script.summary().message(), "that was all");
  EXPECT_EQ(TimeOf(script.summary().end_time()), script.now());
}

TEST(CampaignTest, CanBeVerifiedAfterItsEndWithoutBeingChanged) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.End(v1::FINISHED, v1::STOP_REASON_SPACE);
  const v1::Campaign before = script.summary();
  script.Pass(absl::Hours(1));
  script.PlanVerification(0);
  EXPECT_TRUE(script.state().ended());
  EXPECT_TRUE(script.state().leasable());
  EXPECT_TRUE(script.summary().verifying());
  ASSERT_TRUE(script.state().open_trials().contains(2));
  script.Lease(2, 1, 10);
  EXPECT_EQ(script.state().open_trials().at(2).worker, "workers/a");
  EXPECT_TRUE(script.summary().verifying());
  script.FinishVerification(MeasuredStart(101));
  EXPECT_TRUE(script.state().open_trials().empty());
  EXPECT_EQ(script.summary().SerializeAsString(), before.SerializeAsString());
}

TEST(CampaignTest, IsVerifiedThroughItsEnd) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.PlanVerification(0);
  script.Lease(2);
  script.End(v1::CANCELLED, v1::STOP_REASON_CANCELLED);
  EXPECT_TRUE(script.state().open_trials().contains(2));
  EXPECT_TRUE(script.summary().verifying());
  script.FinishVerification(MeasuredStart(100));
  EXPECT_FALSE(script.summary().verifying());
}

TEST(CampaignTest, PaysNothingForVerifications) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.PlanVerification(0);
  script.Lease(2, 1, 10);
  script.FinishVerification(MeasuredStart(100));
  EXPECT_EQ(script.summary().gpu_seconds(), 2) << "iteration 0 alone";
  EXPECT_EQ(script.summary().state(), v1::RUNNING);
}

TEST(CampaignTest, IsTheSameWhenTheSameEventsAreAppliedAgain) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("SPLIT", 4);
  script.Pass(absl::Seconds(10));
  script.Run(Measured(100, 70));
  script.Pause();
  script.Pass(absl::Seconds(10));
  script.Resume();
  script.Decide();
  script.Lease(3);
  script.Lose(3, v1::LeaseLost::EXPIRED);
  CampaignState again("campaigns/7", TinyBundle());
  for (const v1::Event& event : script.events()) {
    v1::Event stored;  // as it comes back from a store
    ASSERT_TRUE(stored.ParseFromString(event.SerializeAsString()));
    again.Apply(stored);
  }
  EXPECT_EQ(again.summary().SerializeAsString(), script.summary().SerializeAsString());
  EXPECT_EQ(again.Running(script.now()), script.state().Running(script.now()));
  EXPECT_EQ(again.open_trials().at(3).killed, 1);
  EXPECT_EQ(again.open_trials().at(3).planned_at, script.state().open_trials().at(3).planned_at);
  const std::optional<Choice> one = NeighbourChooser().Next(script.state());
  const std::optional<Choice> other = NeighbourChooser().Next(again);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->change.SerializeAsString(), other->change.SerializeAsString());
}

TEST(OldEvents, GetTheFieldsThatTheirWriterDidNotKnow) {
  v1::Event finished, leased, judged;
  finished.mutable_finished()->mutable_iteration()->set_number(1);
  finished.mutable_finished()->mutable_iteration()->set_verdict(v1::REJECTED);
  finished.mutable_finished()->mutable_result()->set_passed_over("not in the recording");
  leased.mutable_leased()->set_trial(1);
  leased.mutable_leased()->set_device("replay of an NVIDIA H200, recorded on 2026-11-15");
  judged.mutable_finished()->mutable_iteration()->set_number(2);
  judged.mutable_finished()->mutable_iteration()->set_verdict(v1::REJECTED);
  CampaignState campaign("campaigns/7", TinyBundle());
  for (v1::Event* event : {&leased, &finished, &judged}) {
    campaign.Apply(*event);
    AddMissingFields(event);
  }
  EXPECT_TRUE(leased.leased().replay());
  EXPECT_TRUE(finished.finished().iteration().untried());
  EXPECT_FALSE(judged.finished().iteration().untried());
  EXPECT_TRUE(campaign.summary().replay());
  EXPECT_EQ(campaign.summary().counts().untried(), 1);
  EXPECT_EQ(campaign.summary().counts().rejected(), 1);
}

}  // namespace
}  // namespace pawl
