#include "orchestrator/engine/search/next_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/read/implementation.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "profiles/gpus.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FixedChooser : public Chooser {
 public:
  explicit FixedChooser(const Choice& choice) : choice_(choice) {}
  std::optional<Choice> Next(const CampaignState&) const override { return choice_; }

 private:
  const Choice choice_;
};

TEST(NextEventTest, BeginsWithTheStartVariant) {
  CampaignScript script;
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  const v1::TrialPlanned& planned = event->planned();
  EXPECT_EQ(planned.trial(), 1);
  EXPECT_EQ(planned.iteration(), 0);
  EXPECT_EQ(planned.purpose(), v1::TRIAL_PURPOSE_ITERATION);
  EXPECT_FALSE(planned.has_parent());
  EXPECT_FALSE(planned.has_change());
  EXPECT_EQ(VariantText(planned.variant()), VariantText(StartVariant(TinyBundle())));
  EXPECT_EQ(planned.author(), "pawl");
  EXPECT_FALSE(script.Decide()) << "one iteration at a time";
}

TEST(NextEventTest, PlansTheNextChangeWithItsReason) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  EXPECT_EQ(event->planned().trial(), 2);
  EXPECT_EQ(event->planned().iteration(), 1);
  EXPECT_EQ(event->planned().parent(), 0);
  EXPECT_EQ(event->planned().change().variable(), "TILE");
  EXPECT_EQ(event->planned().change().from(), 32);
  EXPECT_EQ(event->planned().change().to(), 64);
  EXPECT_NE(event->planned().why(), "");
}

TEST(NextEventTest, DoesNothingWhilePausedOrEnded) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Pause();
  EXPECT_FALSE(script.Decide());
  script.Resume();
  EXPECT_TRUE(script.Decide());
  script.End(v1::CANCELLED, v1::STOP_REASON_CANCELLED);
  EXPECT_FALSE(script.Decide());
}

TEST(NextEventTest, GoesOnBesideAVerification) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.PlanVerification(0);
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  EXPECT_EQ(event->planned().trial(), 3);
  EXPECT_EQ(event->planned().iteration(), 1);
}

v1::CampaignEnded EndOf(CampaignScript* script) {
  std::optional<v1::Event> event = script->Decide();
  if (event && event->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL) {
    script->FinishTotal(Measured(script->summary().start_us(), script->summary().best_us()));
    event = script->Decide();
  }
  EXPECT_TRUE(event && event->has_ended()) << (event ? event->ShortDebugString() : "nothing");
  EXPECT_TRUE(script->state().ended());
  return event ? event->ended() : v1::CampaignEnded();
}

TEST(NextEventTest, FailsWhenTheStartIsRejected) {
  CampaignScript script;
  script.Run(FailedCheck(v1::CHECK_COMPILE, "a semicolon is missing"));
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.state(), v1::FAILED);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_START);
  EXPECT_THAT(ended.message(), HasSubstr("a semicolon is missing"));
}

v1::CampaignSpec Spec(const std::function<void(v1::CampaignSpec*)>& set) {
  v1::CampaignSpec spec;
  *spec.mutable_goal() = TinyBundle().goal();
  set(&spec);
  return spec;
}

TEST(NextEventTest, StopsAtTheGoal) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 70));  // 1.43
  script.Run(Measured(70, 60));   // 1.67
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.state(), v1::FINISHED);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_GOAL);
  EXPECT_EQ(ended.message(), "goal reached: 1.67x the start's speed (goal 1.5x)");
}

TEST(NextEventTest, MeasuresTheGoalByTheBaselineWhereThereIsOne) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
  v1::TrialResult start = MeasuredStart(100);
  start.add_baselines()->set_size("main");
  start.mutable_baselines(0)->set_graph_us(60);
  script.Run(start);
  script.Run(Measured(100, 60));  // 1.67 of the start, 1.0 of the baseline
  EXPECT_FALSE(script.state().ended());
  script.Run(Measured(60, 39));
  EXPECT_THAT(EndOf(&script).message(), HasSubstr("1.54x the baseline's speed"));
}

TEST(NextEventTest, ChargesNoIterationForWhatARecordingLacks) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_iterations(1); }));
  script.Run(MeasuredStart(100));
  v1::TrialResult missing;
  missing.set_passed_over("not in the recording");
  script.Run(missing);
  EXPECT_FALSE(script.state().ended());
  EXPECT_EQ(script.summary().counts().untried(), 1);
  script.Run(Measured(100, 120));
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_ITERATIONS);
}

TEST(NextEventTest, StopsAfterTheIterations) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_iterations(2); }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 120));
  script.Run(Measured(100, 120));
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_ITERATIONS);
  EXPECT_EQ(script.summary().counts().tried(), 2) << "iteration 0 comes beside them";
}

TEST(NextEventTest, StopsAfterTheMinutes) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_minutes(10); }));
  script.Run(MeasuredStart(100));
  script.Pass(absl::Minutes(9.5));
  script.Run(Measured(100, 120));
  script.Pause();
  script.Pass(absl::Minutes(60));
  script.Resume();
  script.Run(Measured(100, 120));
  script.Pass(absl::Minutes(0.5));
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_MINUTES);
}

TEST(NextEventTest, StopsWhenTheMoneyIsSpent) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_dollars(0.003); }));
  script.Decide();
  script.Lease(1, 1, /*price_per_hour=*/3.6);
  script.Finish(1, MeasuredStart(100));  // 2 s for 0.002
  script.Decide();
  script.Lease(2, 1, 3.6);
  script.Finish(2, Measured(100, 120));
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_DOLLARS);
}

TEST(NextEventTest, StopsAfterSoManyRevertsInARow) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_reverts_in_a_row(2); }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 120));
  script.Run(Measured(100, 80));
  EXPECT_EQ(script.state().reverts_in_a_row(), 0);
  script.Run(Measured(80, 120));
  script.Run(Measured(80, 120));
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_REVERTS);
}

TEST(NextEventTest, StopsWhenNothingIsLeftToTry) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  for (int i = 0; i < 4; ++i) script.Run(Measured(100, 120));
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.state(), v1::FINISHED);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_SPACE);
}

TEST(NextEventTest, MeasuresTheTotalGainBeforeItClaimsTheGoal) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 64));
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  EXPECT_EQ(event->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL);
  EXPECT_EQ(event->planned().iteration(), 2);
  EXPECT_EQ(event->planned().parent(), 0);
  EXPECT_EQ(VariantText(event->planned().variant()), VariantText(VariantOf(*script.state().best())));
  EXPECT_FALSE(script.Decide()) << "one thing at a time";
  script.FinishTotal(Measured(100, 70));  // 1.43: the steps promised more than there is
  const std::optional<v1::Event> next = script.Decide();
  ASSERT_TRUE(next && next->has_planned()) << "the goal is not reached";
  EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_ITERATION);
}

// Beside the baseline, which takes so many times as long.
v1::TrialResult BesideBaseline(v1::TrialResult total, double speedup) {
  for (const double noise : {-0.01, 0.0, 0.01, -0.01, 0.0, 0.01}) {
    total.mutable_beside_baseline()->add_log_ratios(std::log(speedup) + noise);
  }
  return total;
}

v1::TrialResult StartBesideBaseline(double us, double baseline_us) {
  v1::TrialResult start = MeasuredStart(us);
  start.add_baselines()->set_size("main");
  start.mutable_baselines(0)->set_graph_us(baseline_us);
  return start;
}

TEST(NextEventTest, ClaimsTheGoalByTheMeasurementBesideTheBaseline) {
  v1::Bundle bundle = TinyBundle();
  bundle.add_baseline_command("python3");
  CampaignScript script(Spec([](v1::CampaignSpec* spec) {
                          spec->mutable_goal()->set_speedup(1.5);
                          spec->mutable_budget()->set_iterations(2);
                        }),
                        bundle);
  script.Run(StartBesideBaseline(100, 80));
  script.Run(Measured(100, 50));  // 1.6 by the times of iteration 0
  const std::optional<v1::Event> total = script.Decide();
  ASSERT_TRUE(total && total->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL)
      << "a child of the start has not been timed beside the baseline";
  script.FinishTotal(BesideBaseline(Measured(100, 50), 1.45));
  EXPECT_NEAR(script.summary().speedup_over_baseline(), 1.45, 1e-9);
  EXPECT_NEAR(script.state().Find(1)->speedup_over_baseline(), 1.45, 1e-9) << "the same in its row";
  script.Run(Measured(50, 60));  // reverted: it goes on while there is budget
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_ITERATIONS);
  EXPECT_EQ(
      ended.message(),
      "all 2 iterations are used up; goal not reached: 1.45x the baseline's speed, measured beside it (goal 1.5x)");
  EXPECT_EQ(ended.tier(), v1::SUCCESS_TIER_MINIMUM);
}

TEST(NextEventTest, SaysTheSpeedThatWasMeasuredBesideTheBaselineWhereItReachesTheGoal) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
  script.Run(StartBesideBaseline(100, 80));
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 50));
  script.Decide();
  script.FinishTotal(BesideBaseline(Measured(100, 50), 1.53));
  const std::optional<v1::Event> end = script.Decide();
  ASSERT_TRUE(end && end->has_ended());
  EXPECT_EQ(end->ended().message(), "goal reached: 1.53x the baseline's speed (goal 1.5x)");
}

TEST(NextEventTest, MeasuresTheTotalGainEveryFewKeeps) {
  v1::Bundle bundle = TinyBundle();
  for (int value : {8, 16, 32}) bundle.mutable_variables(1)->add_values(value);
  bundle.clear_constraints();
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(100); }), bundle);
  script.Run(MeasuredStart(100));
  double us = 100;
  for (int kept = 0; kept < ProfileSet::Default().gates.total_every(); ++kept, us *= 0.9) {
    ASSERT_EQ(script.Run(Measured(us, us * 0.9)).verdict(), v1::KEPT);
  }
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  EXPECT_EQ(event->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL);
  EXPECT_TRUE(event->planned().interim());
  const int best = script.summary().best();
  script.FinishTotal(FailedCheck(v1::CHECK_UNSTEADY, "too hot"));
  EXPECT_EQ(script.summary().best(), best) << "that is no fault of the variant";
  EXPECT_EQ(script.summary().total_gain().speedup_over_start(), 0);
  EXPECT_THAT(script.summary().total_gain().interval().reason(), HasSubstr("too hot"));
  const std::optional<v1::Event> next = script.Decide();
  ASSERT_TRUE(next && next->has_planned());
  EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_ITERATION) << "it is not tried again and again";
}

TEST(NextEventTest, EndsWithAWholeTotalWhereTheBestHadAnInterimOne) {
  v1::Bundle bundle = TinyBundle();
  for (int value : {8, 16, 32}) bundle.mutable_variables(1)->add_values(value);
  bundle.clear_constraints();
  const int keeps = ProfileSet::Default().gates.total_every();
  CampaignScript script(Spec([&](v1::CampaignSpec* spec) {
                          spec->mutable_goal()->set_speedup(100);
                          spec->mutable_budget()->set_iterations(keeps + 1);
                        }),
                        bundle);
  script.Run(MeasuredStart(100));
  double us = 100;
  for (int kept = 0; kept < keeps; ++kept, us *= 0.9) script.Run(Measured(us, us * 0.9));
  const std::optional<v1::Event> interim = script.Decide();
  ASSERT_TRUE(interim && interim->planned().interim());
  script.FinishTotal(Measured(100, us));
  EXPECT_TRUE(script.summary().total_gain().interim());
  EXPECT_NEAR(script.summary().speedup_over_start(), 100 / us, 0.01) << "it replaces the product all the same";
  ASSERT_EQ(script.Run(Measured(us, us * 1.5)).verdict(), v1::REVERTED);
  const std::optional<v1::Event> whole = script.Decide();
  ASSERT_TRUE(whole && whole->has_planned()) << "nothing was run at large sizes yet";
  EXPECT_EQ(whole->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL);
  EXPECT_FALSE(whole->planned().interim());
  script.FinishTotal(Measured(100, us));
  EXPECT_FALSE(script.summary().total_gain().interim());
  const std::optional<v1::Event> end = script.Decide();
  EXPECT_TRUE(end && end->has_ended());
}

TEST(NextEventTest, TakesBackABestThatFailsBesideTheStartWithAllThatWasBuiltOnIt) {
  for (const v1::TrialResult& result : {FailedCheck(v1::CHECK_TOLERANCE, "wrong now"), Measured(100, 130)}) {
    CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
    script.Run(MeasuredStart(100));
    ASSERT_EQ(script.Run(Measured(100, 90)).verdict(), v1::KEPT);
    ASSERT_EQ(script.Run(Measured(90, 60)).verdict(), v1::KEPT);
    const std::optional<v1::Event> total = script.Decide();
    ASSERT_TRUE(total && total->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL);
    script.FinishTotal(result);
    EXPECT_EQ(script.summary().best(), 1);
    const bool wrong = result.has_failure();
    EXPECT_EQ(script.state().Find(2)->verdict(), wrong ? v1::REJECTED : v1::REVERTED);
    EXPECT_EQ(script.state().IsMeasured(*script.state().Find(2)), !wrong) << "no step begins from what is wrong";
    EXPECT_EQ(script.state().EvidenceOf(2), nullptr);
    EXPECT_EQ(script.summary().counts().kept(), 1);
    EXPECT_EQ(script.summary().counts().reverted(), wrong ? 0 : 1);
    EXPECT_EQ(script.summary().counts().rejected(), wrong ? 1 : 0);
    EXPECT_NEAR(script.summary().speedup_over_start(), 1 / 0.9, 0.001);
    const std::optional<v1::Event> next = script.Decide();
    ASSERT_TRUE(next && next->has_planned()) << "the goal is not reached";
    EXPECT_EQ(next->planned().parent(), 1);
  }
}

TEST(NextEventTest, SaysSoWhereTheTotalGainCouldNotBeMeasured) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_goal()->set_speedup(1.5); }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 80));
  script.Run(Measured(80, 50));
  script.Decide();
  v1::TrialResult thrown_away = Measured(100, 50);
  thrown_away.set_discarded(10);
  script.FinishTotal(thrown_away);
  const std::optional<v1::Event> end = script.Decide();
  ASSERT_TRUE(end && end->has_ended());
  EXPECT_THAT(end->ended().message(), HasSubstr("the total speedup is estimated from the steps, not measured"));
}

TEST(NextEventTest, SanitizesTheFinalBestWhereThatWasLeftToTheEnd) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) {
    spec->mutable_goal()->set_speedup(1.5);
    spec->mutable_keep()->set_skip_sanitizer(true);
  }));
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 50));
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned()) << "though it is a child of the start";
  EXPECT_EQ(event->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL);
  script.FinishTotal(FailedCheck(v1::CHECK_RACECHECK, "a race"));
  EXPECT_EQ(script.summary().best(), 0);
}

TEST(NextEventTest, ClaimsNoWinnerThatDidNotPassTheChecksOfTheEnd) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_iterations(2); }));
  script.Run(MeasuredStart(100));
  ASSERT_EQ(script.Run(Measured(100, 80)).verdict(), v1::KEPT);
  ASSERT_EQ(script.Run(Measured(80, 50)).verdict(), v1::KEPT);
  for (const int winner : {2, 1}) {
    const std::optional<v1::Event> total = script.Decide();
    ASSERT_TRUE(total && total->has_planned()) << "iteration " << winner << ", though it has no baseline";
    EXPECT_EQ(total->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL);
    EXPECT_EQ(total->planned().iteration(), winner);
    script.FinishTotal(FailedCheck(v1::CHECK_RACECHECK, "a race"));
  }
  const std::optional<v1::Event> end = script.Decide();
  ASSERT_TRUE(end && end->has_ended());
  EXPECT_EQ(script.summary().best(), 0);
}

// What was compared with the start itself is no product of steps: both must go by what was measured last.
TEST(NextEventTest, EndsWhereTotalsDifferFromWhatTheStepsSaid) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_iterations(2); }));
  script.Run(MeasuredStart(100));
  ASSERT_EQ(script.Run(Measured(100, 90.9)).verdict(), v1::KEPT);
  ASSERT_EQ(script.Run(Measured(90.9, 88)).verdict(), v1::KEPT);
  ASSERT_EQ(script.Decide()->planned().iteration(), 2);
  script.FinishTotal(Measured(100, 91.3));
  EXPECT_EQ(script.summary().best(), 1);
  const std::optional<v1::Event> total = script.Decide();
  ASSERT_TRUE(total && total->has_planned());
  ASSERT_EQ(total->planned().iteration(), 1);
  script.FinishTotal(Measured(100, 89.3));
  EXPECT_EQ(script.summary().best(), 1);
  EXPECT_NEAR(script.summary().speedup_over_start(), 100 / 89.3, 0.001);
  const std::optional<v1::Event> end = script.Decide();
  ASSERT_TRUE(end && end->has_ended());
}

TEST(NextEventTest, DropsAProposalThatCantBeTriedAnyMoreAndSaysWhy) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) {
    spec->mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
    spec->mutable_chooser()->set_wait_seconds(60);
  }));
  script.Run(MeasuredStart(100));
  script.Propose("TILE", 64, "ann");
  script.Decide();
  script.Propose("SPLIT", 4, "bob");  // which TILE=64 forbids
  script.Lease(2);
  script.Finish(2, Measured(100, 50));
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_dropped());
  EXPECT_EQ(event->dropped().author(), "bob");
  EXPECT_THAT(event->dropped().reason(), HasSubstr("constraint"));
  EXPECT_FALSE(script.Decide());
  EXPECT_TRUE(ProposalDeadline(script.state())) << "it waits for another";
}

TEST(NextEventTest, CountsARoundThatKeptOneAsNoRevert) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(script.Decide(NeighbourChooser(), 3));
  for (int trial : {2, 3, 4}) script.Lease(trial);
  script.Finish(2, Measured(100, 50));
  script.Finish(3, Measured(100, 120));
  script.Finish(4, Measured(100, 120));
  EXPECT_EQ(script.state().reverts_in_a_row(), 0);
}

TEST(NextEventTest, NamesTheTierThatWasReached) {
  for (const auto& [us, tier] : {std::pair(95.0, v1::SUCCESS_TIER_BELOW), std::pair(55.0, v1::SUCCESS_TIER_MINIMUM),
                                 std::pair(39.0, v1::SUCCESS_TIER_TARGET), std::pair(20.0, v1::SUCCESS_TIER_STRETCH)}) {
    CampaignScript script(Spec([](v1::CampaignSpec* spec) {
      spec->mutable_goal()->set_speedup(1.5);
      spec->mutable_budget()->set_iterations(1);
    }));
    v1::TrialResult start = MeasuredStart(100);
    start.add_baselines()->set_size("main");
    start.mutable_baselines(0)->set_graph_us(60);
    script.Run(start);
    script.Run(Measured(100, us));
    EXPECT_EQ(EndOf(&script).tier(), tier) << us;
    EXPECT_EQ(script.summary().tier(), tier);
  }
}

// A start variant that keeps the DRAM of an H200 busy.
v1::TrialResult BusyStart(double us) {
  v1::TrialResult start = MeasuredStart(us);
  start.mutable_gpu()->set_name("NVIDIA H200");
  (*start.mutable_evidence()->add_launches()->mutable_metrics())["dram_throughput"] = 93;
  return start;
}

// TinyBundle with arithmetic that takes an H200 so long at least.
v1::Bundle BundleWithRoof(double us) {
  v1::Bundle bundle = TinyBundle();
  bundle.set_work_flops(absl::StrCat(us * FindGpu("NVIDIA H200")->fp32_tflops * 1e6));
  return bundle;
}

TEST(NextEventTest, StopsAtTheRoof) {
  CampaignScript script(v1::CampaignSpec(), BundleWithRoof(96));
  script.Run(BusyStart(100));
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_ROOF);
  EXPECT_THAT(ended.message(), AllOf(HasSubstr("at its roof: 100.000 us, within 5 % of"), HasSubstr("(96.000 us)"),
                                     HasSubstr("The DRAM is 93 % busy")));
  ASSERT_EQ(ended.roof_size(), 2);
  EXPECT_EQ(script.summary().roof_size(), 2);
}

TEST(NextEventTest, TakesNoBusyUnitForARoof) {
  for (const v1::Bundle& bundle : {TinyBundle(), BundleWithRoof(95)}) {
    CampaignScript script(v1::CampaignSpec(), bundle);
    script.Run(BusyStart(100));
    const std::optional<v1::Event> event = script.Decide();
    EXPECT_TRUE(event && event->has_planned()) << "without [work], and 5.3 % above the roofline";
    script.End(v1::CANCELLED, v1::STOP_REASON_CANCELLED);
    EXPECT_EQ(script.summary().roof_size(), 0);
  }
}

// A time below the least is no reason to stop: it says that [work] or the measurement is wrong.
TEST(NextEventTest, GoesOnBelowTheRoofAndSaysSo) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_iterations(1); }),
                        BundleWithRoof(110));
  script.Run(BusyStart(100));
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned()) << event->ShortDebugString();
  script.Lease(event->planned().trial());
  script.Finish(event->planned().trial(), Measured(100, 120));
  const v1::CampaignEnded ended = EndOf(&script);
  EXPECT_EQ(ended.reason(), v1::STOP_REASON_ITERATIONS);
  EXPECT_THAT(ended.message(),
              HasSubstr("100.000 us is below the least that the work of [work] takes on this GPU (110.000 us): [work] "
                        "counts more than is done, or the measurement is wrong"));
  EXPECT_EQ(ended.roof_size(), 0) << "nothing is claimed of the hardware";
}

TEST(NextEventTest, TriesAtTheRoofWhatIsProposed) {
  CampaignScript script(v1::CampaignSpec(), BundleWithRoof(96));
  script.Run(BusyStart(100));
  script.Propose("SPLIT", 2, "ann");
  EXPECT_EQ(script.Run(Measured(100, 120)).author(), "ann");
  EXPECT_EQ(EndOf(&script).reason(), v1::STOP_REASON_ROOF);
}

Choice ChoiceOfGain(const CampaignScript& script, double gain) {
  Choice choice = *NeighbourChooser().Next(script.state());
  choice.score.emplace().set_gain(gain);
  return choice;
}

TEST(NextEventTest, StopsWhereNoChangeIsExpectedToGainEnough) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  const std::optional<v1::Event> event = script.Decide(FixedChooser(ChoiceOfGain(script, 0.0009)));
  ASSERT_TRUE(event && event->has_ended());
  EXPECT_EQ(event->ended().reason(), v1::STOP_REASON_GAIN);
  EXPECT_THAT(event->ended().message(), AllOf(HasSubstr("no change is expected to gain 0.1 %"), HasSubstr("0.09 %"),
                                              HasSubstr("TILE from 32 to 64 (iteration 0)")));
}

TEST(NextEventTest, NamesTheWordsOfTheChangeOfWhichMostIsExpected) {
  v1::Bundle bundle = TinyBundle();
  v1::Variable& variable = *bundle.add_variables();
  variable.set_name("ACC");
  for (const char* word : {"half", "float"}) {
    variable.add_values(variable.words_size());
    variable.add_words(word);
  }
  CampaignScript script(v1::CampaignSpec(), bundle);
  script.Run(MeasuredStart(100));
  Choice choice = ChoiceOfGain(script, 0.0009);
  choice.change.set_variable("ACC");
  choice.change.set_from(0);
  choice.change.set_to(1);
  const std::optional<v1::Event> event = script.Decide(FixedChooser(choice));
  ASSERT_TRUE(event && event->has_ended());
  EXPECT_THAT(event->ended().message(), HasSubstr("ACC from half to float (iteration 0)"));
}

TEST(NextEventTest, GoesOnForAsLittleAsTheBudgetSays) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_budget()->set_least_gain(0.0005); }));
  script.Run(MeasuredStart(100));
  const std::optional<v1::Event> event = script.Decide(FixedChooser(ChoiceOfGain(script, 0.0009)));
  EXPECT_TRUE(event && event->has_planned());
}

TEST(NextEventTest, PausesWhereTheBaselineIsNotWhatItWas) {
  CampaignScript script;
  script.Decide();
  script.Lease(1);
  v1::TrialResult start = MeasuredStart(100);
  start.add_baselines()->set_size("main");
  start.mutable_baselines(0)->set_graph_us(60);
  v1::Event event;
  event.mutable_finished()->set_trial(1);
  *event.mutable_finished()->mutable_result() = start;
  *event.mutable_finished()->mutable_iteration() =
      Judge(script.state(), script.state().open_trials().at(1).planned, start, Gates::Default(), 50);
  script.Apply(event);
  const std::optional<v1::Event> paused = script.Decide();
  ASSERT_TRUE(paused && paused->has_paused());
  EXPECT_THAT(paused->paused().reason(), HasSubstr("60.000 us (expected 50.000 us)"));
  script.Resume();
  const std::optional<v1::Event> next = script.Decide();
  ASSERT_TRUE(next && next->has_planned()) << "it was looked at";
}

TEST(NextEventTest, WaitsForAProposalWhereOneIsAskedFor) {
  for (const v1::NoProposal then : {v1::NO_PROPOSAL_TREE, v1::NO_PROPOSAL_PAUSE}) {
    CampaignScript script(Spec([&](v1::CampaignSpec* spec) {
      spec->mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
      spec->mutable_chooser()->set_wait_seconds(60);
      spec->mutable_chooser()->set_no_proposal(then);
    }));
    script.Run(MeasuredStart(100));
    EXPECT_FALSE(script.Decide());
    ASSERT_TRUE(ProposalDeadline(script.state()));
    EXPECT_EQ(*ProposalDeadline(script.state()), script.now() + absl::Seconds(60));
    script.Pass(absl::Seconds(59));
    EXPECT_FALSE(script.Decide());
    script.Propose("SPLIT", 2, "ann");
    EXPECT_FALSE(ProposalDeadline(script.state()));
    EXPECT_EQ(script.Run(Measured(100, 120)).author(), "ann");
    EXPECT_FALSE(script.Decide()) << "it waits again";
    script.Pass(absl::Seconds(60));
    const std::optional<v1::Event> event = script.Decide();
    ASSERT_TRUE(event);
    if (then == v1::NO_PROPOSAL_PAUSE) {
      EXPECT_THAT(event->paused().reason(), HasSubstr("no change was proposed within 60 s"));
    } else {
      EXPECT_EQ(event->planned().author(), "pawl");
    }
  }
}

TEST(NextEventTest, TunesForItsShareAfterEachKeptEditWhereBothAreAskedFor) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("one\ntwo\nthree\n");
  CampaignScript script(Spec([](v1::CampaignSpec* spec) {
                          spec->mutable_chooser()->set_kind(v1::CHOOSER_KIND_MIXED);
                          spec->mutable_chooser()->set_wait_seconds(60);
                          spec->mutable_chooser()->set_tuning_share(0.1);
                          spec->mutable_budget()->set_iterations(20);
                        }),
                        bundle);
  script.Run(MeasuredStart(100));
  EXPECT_FALSE(script.Decide()) << "it waits for the first edit";
  script.ProposePatch("slower", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
  EXPECT_EQ(script.Run(Measured(100, 120)).author(), "an agent");
  EXPECT_FALSE(script.Decide()) << "it was not kept";
  script.ProposePatch("faster", "@@ -1,3 +1,3 @@\n one\n two\n-three\n+3\n");
  EXPECT_EQ(script.Run(Measured(100, 80)).author(), "an agent");
  script.ProposePatch("third", "@@ -1,3 +1,3 @@\n-one\n+1\n two\n 3\n");
  EXPECT_EQ(script.Run(Measured(80, 100)).author(), "pawl") << "a tenth of 20 iterations, before what was proposed";
  EXPECT_EQ(script.Run(Measured(80, 100)).author(), "pawl");
  EXPECT_EQ(script.Run(Measured(80, 100)).change().source().name(), "third");
}

TEST(NextEventTest, TunesAfterAKeptEditWhereIterationsHaveNoLimit) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("one\ntwo\nthree\n");
  CampaignScript script(Spec([](v1::CampaignSpec* spec) {
                          spec->mutable_chooser()->set_kind(v1::CHOOSER_KIND_MIXED);
                          spec->mutable_chooser()->set_wait_seconds(60);
                          spec->mutable_chooser()->set_tuning_share(0.04);
                          spec->mutable_budget()->set_iterations(0);
                          spec->mutable_budget()->set_minutes(60);
                        }),
                        bundle);
  script.Run(MeasuredStart(100));
  script.ProposePatch("faster", "@@ -1,3 +1,3 @@\n one\n two\n-three\n+3\n");
  EXPECT_EQ(script.Run(Measured(100, 80)).author(), "an agent");
  EXPECT_EQ(script.Run(Measured(80, 100)).author(), "pawl");
  EXPECT_EQ(script.Run(Measured(80, 100)).author(), "pawl");
  EXPECT_FALSE(script.Decide()) << "0.04 of 50 iterations";
}

TEST(NextEventTest, TakesNoProposalWhereTheTreeChooses) {
  CampaignScript script(Spec([](v1::CampaignSpec* spec) { spec->mutable_chooser()->set_kind(v1::CHOOSER_KIND_TREE); }));
  script.Run(MeasuredStart(100));
  script.Propose("SPLIT", 2, "ann");
  EXPECT_EQ(script.Run(Measured(100, 120)).author(), "pawl");
}

// Applying takes long where the source is large: who holds a lock does it before.
TEST(NextEventTest, AppliesNoEditAgainThatWasAppliedToTheBestBefore) {
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("one\ntwo\nthree\n");
  CampaignScript script(spec, bundle);
  script.Run(MeasuredStart(100));
  script.ProposePatch("swap", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
  const CampaignState::Proposal* edit = UnappliedEdit(script.state());
  ASSERT_NE(edit, nullptr);
  edit->patched = {7, ImplementationState{"of another best", VariantOf(*script.state().best())}, "a", "b"};
  EXPECT_EQ(UnappliedEdit(script.state()), edit);
  edit->patched = {0, ImplementationState{"applied before", VariantOf(*script.state().best())}, "a", "b"};
  EXPECT_EQ(UnappliedEdit(script.state()), nullptr);
  const std::optional<v1::Event> planned = script.Decide();
  ASSERT_TRUE(planned && planned->has_planned());
  EXPECT_EQ(planned->planned().patched_source(), "applied before");
}

TEST(NextEventTest, TriesAProposedSourceEditAndGoesOnFromIt) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("one\ntwo\nthree\n");
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  script.ProposePatch("swap", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
  const v1::Iteration edited = script.Run(Measured(100, 80));
  EXPECT_EQ(edited.change().source().name(), "swap");
  EXPECT_EQ(edited.author(), "an agent");
  EXPECT_EQ(edited.verdict(), v1::KEPT);
  EXPECT_NE(edited.patched_source_hash(), "");
  EXPECT_EQ(script.state().SourceOf(1), "one\n2\nthree\n");
  EXPECT_TRUE(script.state().proposals().empty());
  const v1::Iteration next = script.Run(Measured(80, 90));
  EXPECT_EQ(next.parent(), 1);
  EXPECT_EQ(next.author(), "pawl");
  EXPECT_EQ(script.state().SourceOf(2), "one\n2\nthree\n") << "a child has its parent's source";
  EXPECT_EQ(next.patched_source_hash(), edited.patched_source_hash());
  EXPECT_EQ(script.state().SourceOf(0), "one\ntwo\nthree\n");
}

// TinyBundle's kernel.toml, with one more variable and launches that use it.
std::string WithWays(const CampaignState& campaign) {
  const v1::Iteration& best = *campaign.best();
  const std::string toml =
      EditableFiles(campaign.bundle(), campaign.SourceOf(best.number()), VariantOf(best))->back().second;
  const auto lines = std::count(toml.begin(), toml.end(), '\n');
  return absl::StrCat("--- a/kernel.toml\n+++ b/kernel.toml\n@@ -", lines, ",0 +", lines + 1,
                      ",5 @@\n+\n+[[variable]]\n+name = \"WAYS\"\n+values = [1, 2, 4]\n+start = 2\n");
}

TEST(NextEventTest, SearchesTheVariablesThatAnEditAdds) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("TILE", 64);
  script.Run(Measured(100, 90));
  script.ProposePatch("ways", WithWays(script.state()));
  const v1::Iteration edited = script.Run(Measured(90, 80));
  EXPECT_EQ(edited.verdict(), v1::KEPT);
  EXPECT_EQ(edited.variant().at("WAYS"), 2);
  EXPECT_EQ(edited.variant().at("TILE"), 64) << "the others keep their values";
  EXPECT_EQ(script.state().BundleOf(script.state().SourceIdOf(edited.number())).variables_size(), 3);
  const TreeChooser chooser;
  std::set<std::string> tried;
  for (int i = 0; i < 5; ++i) {  // all that constraints allow
    const std::optional<v1::Event> planned = script.Decide(chooser);
    ASSERT_TRUE(planned && planned->has_planned()) << i;
    EXPECT_EQ(planned->planned().variant().values_size(), 3);
    EXPECT_EQ(script.state().SourceIdOf(planned->planned().parent()), script.state().SourceIdOf(edited.number()));
    tried.insert(planned->planned().change().variable());
    script.Lease(planned->planned().trial());
    script.Finish(planned->planned().trial(), Measured(80, 85));
  }
  EXPECT_TRUE(tried.contains("WAYS"));
  EXPECT_TRUE(tried.contains("TILE") || tried.contains("SPLIT"));
  CampaignState again("campaigns/1", TinyBundle());
  for (const v1::Event& event : script.events()) again.Apply(event);
  EXPECT_EQ(again.SourceOf(edited.number()), script.state().SourceOf(edited.number()));
  EXPECT_EQ(again.BundleOf(again.SourceIdOf(edited.number())).variables_size(), 3) << "from its events alone";
}

TEST(NextEventTest, AppliesAnEditToABestThatCameAfterItWasProposed) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  script.ProposePatch("first", "@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n four\n");
  script.ProposePatch("second", "@@ -3,5 +3,5 @@\n three\n four\n-five\n+5\n six\n seven\n");
  script.ProposePatch("third", "@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n");
  script.Run(Measured(100, 80));
  const v1::Iteration second = script.Run(Measured(80, 60));
  EXPECT_EQ(second.change().source().name(), "second");
  EXPECT_EQ(script.state().SourceOf(2), "one\n2\nthree\nfour\n5\nsix\nseven\n");
  const std::optional<v1::Event> dropped = script.Decide();
  ASSERT_TRUE(dropped && dropped->has_dropped());
  EXPECT_THAT(
      dropped->dropped().reason(),
      HasSubstr("the patch fits iteration 0, and the best, iteration 2, differs in lines that it touches: hunk 1 "
                "of the patch does not fit tiny.cu: at line 2 expected \"two\", found \"2\""));
}

TEST(NextEventTest, RefusesAChooserThatChangesTwoVariablesOrNone) {
  for (const auto& [tile, split] : {std::pair(64, 2), std::pair(32, 1)}) {
    CampaignScript script;
    script.Run(MeasuredStart(100));
    Choice choice;
    choice.change.set_variable("TILE");
    (*choice.variant.mutable_values())["TILE"] = tile;
    (*choice.variant.mutable_values())["SPLIT"] = split;
    const std::optional<v1::Event> event = script.Decide(FixedChooser(choice));
    ASSERT_TRUE(event && event->has_ended());
    EXPECT_EQ(event->ended().state(), v1::FAILED);
    EXPECT_THAT(event->ended().message(), HasSubstr("exactly one variable"));
  }
}

TEST(NextEventTest, RefusesAChooserWhoseParentWasNotMeasured) {
  for (int parent : {1, 17}) {
    CampaignScript script;
    script.Run(MeasuredStart(100));
    script.Run(FailedCheck(v1::CHECK_FAULT, "an illegal address"));  // TILE 64
    Choice choice;
    choice.parent = parent;
    (*choice.variant.mutable_values())["TILE"] = 64;
    (*choice.variant.mutable_values())["SPLIT"] = 2;
    const std::optional<v1::Event> event = script.Decide(FixedChooser(choice));
    ASSERT_TRUE(event && event->has_ended());
    EXPECT_THAT(event->ended().message(), HasSubstr("measured parent"));
  }
}

TEST(NextEventTest, TriesProposalsFirstInTheirOrderAndNamesTheirAuthors) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("SPLIT", 4, "ann");
  script.Propose("TILE", 16, "an agent");
  const v1::Iteration first = script.Run(Measured(100, 120));
  EXPECT_EQ(first.change().variable(), "SPLIT");
  EXPECT_EQ(first.change().from(), 1);
  EXPECT_EQ(first.change().to(), 4);
  EXPECT_EQ(first.author(), "ann");
  EXPECT_EQ(first.why(), "a hunch");
  const v1::Iteration second = script.Run(Measured(100, 120));
  EXPECT_EQ(second.change().variable(), "TILE");
  EXPECT_EQ(second.author(), "an agent");
  EXPECT_EQ(script.Run(Measured(100, 120)).author(), "pawl");
}

TEST(NextEventTest, PassesOverAProposalThatTheBestHasAlready) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Decide();  // TILE 64
  script.Propose("TILE", 64);
  script.Propose("SPLIT", 2, "bob");
  script.Lease(2);
  script.Finish(2, Measured(100, 50));
  EXPECT_EQ(script.Run(Measured(50, 60)).author(), "bob");
}

TEST(NextEventTest, GivesTheSameAnswerForTheSameEvents) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 50));
  const std::optional<v1::Event> once = Decide(script.state(), NeighbourChooser(), script.now());
  const std::optional<v1::Event> again = Decide(script.state(), NeighbourChooser(), script.now());
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->ShortDebugString(), again->ShortDebugString());
}

}  // namespace
}  // namespace pawl
