// Steps from a variant that is not the best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "orchestrator/engine/search/next_event.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Turns a variable of a given iteration to another value.
class FromIteration : public Chooser {
 public:
  explicit FromIteration(int parent, std::string variable = "SPLIT", int to = 2)
      : parent_(parent), variable_(std::move(variable)), to_(to) {}
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    Choice choice;
    choice.parent = parent_;
    choice.variant = VariantOf(*campaign.Find(parent_));
    int32_t& value = (*choice.variant.mutable_values())[variable_];
    choice.change.set_variable(variable_);
    choice.change.set_from(value);
    choice.change.set_to(to_);
    value = to_;
    return choice;
  }

 private:
  const int parent_;
  const std::string variable_;
  const int to_;
};

// The start takes 100 us, TILE=64 takes 120 us and was reverted; the last step starts from there.
class Expedition : public testing::Test {
 protected:
  Expedition() {
    script_.Run(MeasuredStart(100));
    script_.Run(Measured(100, 120));
  }
  v1::Iteration Step(const v1::TrialResult& result) {
    const std::optional<v1::Event> planned = script_.Decide(FromIteration(1));
    EXPECT_TRUE(planned->planned().expedition());
    EXPECT_EQ(planned->planned().parent(), 1);
    script_.Lease(planned->planned().trial());
    return script_.Finish(planned->planned().trial(), result);
  }
  CampaignScript script_;
};

TEST_F(Expedition, IsNotKeptForBeingFasterThanItsParent) {
  const v1::Iteration step = Step(Measured(120, 110));
  EXPECT_EQ(step.verdict(), v1::REVERTED);
  EXPECT_TRUE(step.expedition());
  EXPECT_THAT(step.reason(), HasSubstr("an expedition, at about 0.909x the speed of the best variant (iteration 0)"));
  EXPECT_EQ(script_.state().UncomparedEnd(), nullptr) << "it can't be faster than the best";
  EXPECT_EQ(script_.summary().best(), 0);
}

TEST_F(Expedition, IsComparedWithTheBestAtItsEndAndKeptIfItIsFaster) {
  Step(Measured(120, 80));
  const std::optional<v1::Event> end = script_.Decide();
  ASSERT_TRUE(end && end->has_planned());
  EXPECT_EQ(end->planned().purpose(), v1::TRIAL_PURPOSE_END);
  EXPECT_EQ(end->planned().iteration(), 2);
  EXPECT_EQ(end->planned().parent(), 0);
  EXPECT_FALSE(script_.Decide()) << "the best may change";
  script_.Lease(end->planned().trial());
  const v1::Iteration kept = script_.Finish(end->planned().trial(), Measured(100, 81));
  EXPECT_EQ(kept.verdict(), v1::KEPT);
  EXPECT_THAT(kept.reason(), HasSubstr("the end of an expedition"));
  EXPECT_EQ(kept.over_best().result(), v1::FASTER);
  EXPECT_EQ(kept.compared_with(), 0);
  EXPECT_EQ(kept.time_us(), 81) << "as it was measured beside the best, not as a step";
  EXPECT_EQ(kept.parent_time_us(), 0) << "which was measured in another run";
  EXPECT_EQ(script_.summary().best_us(), 81);
  EXPECT_EQ(script_.summary().best(), 2);
  EXPECT_NEAR(script_.summary().speedup_over_start(), 100 / 81.0, 1e-3) << "by the comparison with the best";
  EXPECT_EQ(script_.summary().counts().kept(), 1);
  EXPECT_EQ(script_.state().reverts_in_a_row(), 0);
}

// Each step alone is within what the keep rule asks for.
TEST_F(Expedition, IsComparedWithTheBestWhereSeveralStepsThatGainLittleAreFasterTogether) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  EXPECT_EQ(script.Run(Measured(100, 99.1)).verdict(), v1::REVERTED);
  const std::optional<v1::Event> step = script.Decide(FromIteration(1));
  script.Lease(step->planned().trial());
  v1::TrialResult little = Measured(99.1, 98.2);
  little.clear_confirming_pairs();
  EXPECT_NE(script.Finish(step->planned().trial(), little).comparison(), v1::FASTER);
  const std::optional<v1::Event> end = script.Decide();
  ASSERT_TRUE(end && end->has_planned());
  ASSERT_EQ(end->planned().purpose(), v1::TRIAL_PURPOSE_END);
  EXPECT_EQ(end->planned().iteration(), 2);
  script.Lease(end->planned().trial());
  v1::TrialResult result = Measured(100, 98);
  result.mutable_evidence()->add_launches();
  EXPECT_EQ(script.Finish(end->planned().trial(), result).verdict(), v1::KEPT);
  EXPECT_EQ(script.summary().best(), 2);
  ASSERT_NE(script.state().EvidenceOf(2), nullptr) << "it has none as a step";
  EXPECT_EQ(script.state().EvidenceOf(2)->launches_size(), 1);
}

TEST_F(Expedition, IsNotComparedWithTheBestForLessThanTheKeepRuleAsksFor) {
  const v1::Iteration step = Step(Measured(120, 99.5));
  EXPECT_EQ(script_.state().UncomparedEnd(), nullptr);
  EXPECT_THAT(step.reason(), EndsWith("at about 1.005x the speed of the best variant (iteration 0)"));
}

// Its parent was compared, or will be.
TEST_F(Expedition, IsNotComparedWithTheBestWhereAStepDidNotChangeTheCode) {
  Step(Measured(120, 80));
  std::optional<v1::Event> planned = script_.Decide();
  script_.Lease(planned->planned().trial());
  v1::TrialResult unconfirmed = Measured(100, 90);
  unconfirmed.clear_confirming_pairs();
  EXPECT_EQ(script_.Finish(planned->planned().trial(), unconfirmed).verdict(), v1::REVERTED);
  ASSERT_GT(script_.state().SpeedupOf(*script_.state().Find(2)), 1.1);
  planned = script_.Decide(FromIteration(2, "TILE", 16));
  ASSERT_EQ(planned->planned().parent(), 2);
  script_.Lease(planned->planned().trial());
  v1::TrialResult same;
  same.set_same_code(true);
  EXPECT_EQ(script_.Finish(planned->planned().trial(), same).comparison(), v1::SAME);
  EXPECT_EQ(script_.state().UncomparedEnd(), nullptr);
}

TEST_F(Expedition, IsJudgedStepByStepByOneProcessAndKeptByMore) {
  v1::TrialResult one = Measured(120, 80);
  one.clear_confirming_pairs();
  const v1::Iteration step = Step(one);
  EXPECT_EQ(step.comparison(), v1::FASTER);
  EXPECT_EQ(step.interval().processes(), 1);
  EXPECT_EQ(step.verdict(), v1::REVERTED);
  const std::optional<v1::Event> end = script_.Decide();
  ASSERT_TRUE(end && end->has_planned());
  ASSERT_EQ(end->planned().purpose(), v1::TRIAL_PURPOSE_END);
  script_.Lease(end->planned().trial());
  v1::TrialResult unconfirmed = Measured(100, 81);
  unconfirmed.clear_confirming_pairs();
  EXPECT_EQ(script_.Finish(end->planned().trial(), unconfirmed).verdict(), v1::REVERTED);
}

TEST_F(Expedition, HasTheSeatTimeOfTheTrialThatItWasKeptBy) {
  Step(Measured(120, 80));
  const std::optional<v1::Event> end = script_.Decide();
  script_.Lease(end->planned().trial());
  v1::TrialResult result = Measured(100, 81);
  result.set_notes("compute-sanitizer is not installed here");
  const v1::Iteration kept = script_.Finish(end->planned().trial(), result);
  EXPECT_NEAR(kept.candidate_beside_witness().log_time(), std::log(0.81), 1e-3);
  EXPECT_EQ(kept.candidate_beside_witness().witness(), 0) << "the best variant then";
  EXPECT_EQ(kept.candidate_beside_witness().processes(), 2);
  EXPECT_THAT(kept.notes(), HasSubstr("compute-sanitizer is not installed here"));
}

TEST_F(Expedition, IsRejectedWhereItsEndIsWrongWhileItIsTimed) {
  Step(Measured(120, 80));
  const std::optional<v1::Event> end = script_.Decide();
  script_.Lease(end->planned().trial());
  const v1::Iteration wrong =
      script_.Finish(end->planned().trial(), FailedCheck(v1::CHECK_TIMED_OUTPUT, "a timed call gave a wrong output"));
  EXPECT_EQ(wrong.verdict(), v1::REJECTED);
  EXPECT_EQ(wrong.failure().check(), v1::CHECK_TIMED_OUTPUT);
  ASSERT_EQ(wrong.failed_gates_size(), 1);
  EXPECT_EQ(script_.summary().best(), 0);
}

TEST_F(Expedition, StaysRevertedWhereItsEndIsNotFasterThanTheBest) {
  Step(Measured(120, 95));
  const std::optional<v1::Event> end = script_.Decide();
  script_.Lease(end->planned().trial());
  EXPECT_EQ(script_.Finish(end->planned().trial(), Measured(100, 101)).verdict(), v1::REVERTED);
  EXPECT_EQ(script_.summary().best(), 0);
  EXPECT_EQ(script_.state().UncomparedEnd(), nullptr) << "it is compared once";
}

TEST_F(Expedition, IsNotComparedAgainWhereTheComparisonFailed) {
  Step(Measured(120, 80));
  const std::optional<v1::Event> end = script_.Decide();
  script_.Lease(end->planned().trial());
  const v1::Iteration failed =
      script_.Finish(end->planned().trial(), FailedCheck(v1::CHECK_UNSTEADY, "the GPU is too unsteady"));
  EXPECT_EQ(failed.verdict(), v1::REVERTED);
  EXPECT_THAT(failed.reason(), HasSubstr("it could not be compared with iteration 0: the GPU is too unsteady"));
  const std::optional<v1::Event> next = script_.Decide();
  ASSERT_TRUE(next && next->has_planned());
  EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_ITERATION);
}

TEST_F(Expedition, IsTheSameCampaignAfterARestart) {
  Step(Measured(120, 80));
  const std::optional<v1::Event> end = script_.Decide();
  script_.Lease(end->planned().trial());
  script_.Finish(end->planned().trial(), Measured(100, 81));
  CampaignState again(script_.summary().name(), TinyBundle());
  for (const v1::Event& event : script_.events()) again.Apply(event);
  EXPECT_EQ(again.summary().ShortDebugString(), script_.summary().ShortDebugString());
  EXPECT_EQ(again.Find(2)->ShortDebugString(), script_.state().Find(2)->ShortDebugString());
  EXPECT_NE(again.EvidenceOf(2), nullptr);
}

}  // namespace
}  // namespace pawl
