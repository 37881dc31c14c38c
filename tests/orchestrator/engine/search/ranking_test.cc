#include "orchestrator/engine/search/ranking.h"

#include <gtest/gtest.h>

#include <memory>

#include "orchestrator/engine/search/single_change.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

// SPLIT gives more parallelism, TILE less.
v1::Bundle ParallelBundle(int tile) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_variables(0)->set_start(tile);
  for (int i = 0; i < 2; ++i) {
    v1::Effect& effect = *bundle.mutable_variables(i)->add_affects();
    effect.set_resource(v1::RESOURCE_PARALLELISM);
    effect.set_direction(i == 0 ? v1::DIRECTION_LESS : v1::DIRECTION_MORE);
  }
  return bundle;
}

v1::Effect EffectOf(v1::Resource resource, v1::Direction direction) {
  v1::Effect effect;
  effect.set_resource(resource);
  effect.set_direction(direction);
  return effect;
}

RuleScore AsksFor(const v1::Effect& wanted, double deficit) {
  v1::Finding finding;
  finding.set_rule("a-rule");
  finding.set_phase(v1::PHASE_MEMORY);
  finding.set_severity(1);
  finding.set_deficit(deficit);
  *finding.add_wants() = wanted;
  return RuleScore({finding}, {}, RuleSettings(), {});
}

// A rule that asks for four times the parallelism.
RuleScore AsksForParallelism() { return AsksFor(EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE), 0.25); }

RankedChange Ranked(const CampaignScript& script, const std::string& variable, int to,
                    const RankingSettings& settings = {}, const RuleScore& rules = AsksForParallelism()) {
  for (const RankedChange& change : RankChanges(script.state(), rules, settings).changes) {
    if (change.change.variable() == variable && change.change.to() == to &&
        change.parent == script.state().best()->number()) {
      return change;
    }
  }
  ADD_FAILURE() << variable << " to " << to << " is not ranked";
  return {};
}

void Try(CampaignScript* script, const std::string& variable, int to, const v1::TrialResult& result) {
  script->Propose(variable, to);
  script->Run(result);
}

// Turns a variable of the best variant, for the sake of an effect.
class OneChange : public Chooser {
 public:
  OneChange(const std::string& variable, int to, const v1::Effect& effect) : effect_(effect) {
    change_.set_variable(variable);
    change_.set_to(to);
  }
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    ProposalRefusal refusal;
    std::optional<Choice> choice = Proposed(campaign, change_, &refusal);
    if (choice) choice->effect = effect_;
    return choice;
  }

 private:
  v1::Change change_;
  v1::Effect effect_;
};

void TryFor(CampaignScript* script, const std::string& variable, int to, const v1::Effect& effect,
            const v1::TrialResult& result) {
  const std::optional<v1::Event> planned = script->Decide(OneChange(variable, to, effect));
  ASSERT_TRUE(planned && planned->has_planned());
  script->Lease(planned->planned().trial());
  script->Finish(planned->planned().trial(), result);
}

TEST(Ranking, AddsWhatConstraintsForbidToTheChangesThatAllowIt) {
  v1::Bundle bundle = ParallelBundle(64);
  bundle.mutable_variables(0)->clear_affects();
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  // TILE=64 with SPLIT=4 is forbidden, TILE=32 with SPLIT=4 is not.
  const RankedChange smaller = Ranked(script, "TILE", 32);
  ASSERT_TRUE(smaller.unlocks);
  EXPECT_EQ(smaller.unlocks->variable(), "SPLIT");
  EXPECT_EQ(smaller.unlocks->to(), 4);
  EXPECT_DOUBLE_EQ(smaller.score.rules(), 0.5 * Ranked(script, "SPLIT", 4).rule.log_gain);
  EXPECT_FALSE(Ranked(script, "SPLIT", 2).unlocks);
}

TEST(Ranking, UnlocksNothingWhereNothingIsForbidden) {
  v1::Bundle bundle = ParallelBundle(32);
  bundle.clear_constraints();
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  EXPECT_FALSE(Ranked(script, "TILE", 16).unlocks);
  EXPECT_FALSE(Ranked(script, "SPLIT", 4).unlocks);
}

TEST(Ranking, DiscountsADirectionThatFailed) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  const double split = Ranked(script, "SPLIT", 4).score.rules(), tile = Ranked(script, "TILE", 16).score.rules();
  Try(&script, "SPLIT", 2, Measured(100, 120));
  EXPECT_DOUBLE_EQ(Ranked(script, "SPLIT", 4).score.rules(), 0.5 * split);
  EXPECT_DOUBLE_EQ(Ranked(script, "SPLIT", 4).discount, 0.5);
  EXPECT_DOUBLE_EQ(Ranked(script, "TILE", 16).score.rules(), tile) << "another variable is not affected";
}

TEST(Ranking, DoesNotDiscountByAChangeThatARecordingLacks) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  const double before = Ranked(script, "SPLIT", 4).score.rules();
  v1::TrialResult lacking;
  lacking.set_passed_over("not recorded");
  Try(&script, "SPLIT", 2, lacking);
  EXPECT_DOUBLE_EQ(Ranked(script, "SPLIT", 4).score.rules(), before);
}

TEST(Ranking, DiscountsAValueThatAKeptChangeLeft) {
  v1::Bundle bundle = ParallelBundle(32);
  bundle.clear_constraints();
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  Try(&script, "TILE", 64, Measured(100, 80));
  Try(&script, "SPLIT", 2, Measured(80, 70));
  ASSERT_EQ(script.state().best()->number(), 2);
  const RuleScore rules = AsksForParallelism();
  const v1::Variable& tile = script.state().bundle().variables(0);
  EXPECT_DOUBLE_EQ(Ranked(script, "TILE", 32).score.rules(), 0.6 * rules.Of(tile, 64, 32).log_gain);
  EXPECT_DOUBLE_EQ(Ranked(script, "TILE", 16).score.rules(), rules.Of(tile, 64, 16).log_gain) << "it was never tried";
  RankingSettings trusting;
  trusting.returning = 1;
  EXPECT_LT(Ranked(script, "TILE", 32).score.model(), Ranked(script, "TILE", 32, trusting).score.model());
}

// SPLIT brings launches along, a larger TILE takes them away, and STAGES has nothing to do with it.
std::unique_ptr<CampaignScript> SplitFor(const v1::Effect& effect) {
  v1::Bundle bundle = ParallelBundle(32);
  bundle.clear_constraints();
  *bundle.mutable_variables(0)->add_affects() = EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_LESS);
  *bundle.mutable_variables(1)->add_affects() = EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_MORE);
  v1::Variable& stages = *bundle.add_variables();
  stages.set_name("STAGES");
  for (const int value : {1, 2}) stages.add_values(value);
  stages.set_start(1);
  auto script = std::make_unique<CampaignScript>(v1::CampaignSpec(), bundle);
  script->Run(MeasuredStart(100));
  TryFor(script.get(), "SPLIT", 4, effect, Measured(100, 80));
  Try(script.get(), "TILE", 16, Measured(80, 70));
  return script;
}

TEST(Ranking, DownWeightsOtherChangesUntilTheCauseOfTheFindingIsTested) {
  const std::unique_ptr<CampaignScript> split = SplitFor(EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE));
  const CampaignScript& script = *split;
  ASSERT_EQ(script.state().best()->number(), 2);
  const RuleScore rules = AsksFor(EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_LESS), 0);
  const auto& variables = script.state().bundle().variables();
  const RankedChange taken_back = Ranked(script, "SPLIT", 1, {}, rules), other = Ranked(script, "TILE", 64, {}, rules);
  EXPECT_TRUE(taken_back.takes_back);
  EXPECT_DOUBLE_EQ(taken_back.score.rules(), rules.Of(variables[1], 4, 1).log_gain);
  EXPECT_DOUBLE_EQ(other.score.rules(), 0.6 * rules.Of(variables[0], 16, 64).log_gain);
  ASSERT_TRUE(other.after);
  EXPECT_EQ(other.after->variable(), "SPLIT");
  EXPECT_DOUBLE_EQ(other.rule.log_gain, rules.Of(variables[0], 16, 64).log_gain) << "the predicted gain itself stays";
}

TEST(Ranking, NamesNoCauseWhereTheChangeWasKeptForThatVeryEffect) {
  const std::unique_ptr<CampaignScript> split = SplitFor(EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_MORE));
  const CampaignScript& script = *split;
  const RuleScore rules = AsksFor(EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_LESS), 0);
  const auto& variables = script.state().bundle().variables();
  EXPECT_DOUBLE_EQ(Ranked(script, "SPLIT", 1, {}, rules).score.rules(), 0.6 * rules.Of(variables[1], 4, 1).log_gain);
  EXPECT_DOUBLE_EQ(Ranked(script, "TILE", 64, {}, rules).score.rules(), rules.Of(variables[0], 16, 64).log_gain);
}

TEST(Ranking, TestsTheCauseOnce) {
  const std::unique_ptr<CampaignScript> split = SplitFor(EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE));
  const RuleScore rules = AsksFor(EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_LESS), 0);
  Try(split.get(), "SPLIT", 1, Measured(70, 90));
  Try(split.get(), "STAGES", 2, Measured(70, 60));
  ASSERT_EQ(split->state().best()->number(), 4);
  const auto& variables = split->state().bundle().variables();
  EXPECT_LT(Ranked(*split, "SPLIT", 1, {}, rules).discount, 1) << "it was slower under another parent";
  const RankedChange other = Ranked(*split, "TILE", 64, {}, rules);
  EXPECT_FALSE(other.after);
  EXPECT_DOUBLE_EQ(other.score.rules(), rules.Of(variables[0], 16, 64).log_gain);
}

TEST(Ranking, DiscountsAValueThatWasTriedAndLeftAgain) {
  const std::unique_ptr<CampaignScript> split = SplitFor(EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE));
  TryFor(split.get(), "SPLIT", 1, EffectOf(v1::RESOURCE_LAUNCHES, v1::DIRECTION_LESS), Measured(70, 60));
  Try(split.get(), "STAGES", 2, Measured(60, 50));
  ASSERT_EQ(split->state().best()->number(), 4);
  const RankedChange again = Ranked(*split, "SPLIT", 4);
  EXPECT_FALSE(again.takes_back) << "the variable was changed twice";
  EXPECT_DOUBLE_EQ(again.discount, 0.2);
}

}  // namespace
}  // namespace pawl
