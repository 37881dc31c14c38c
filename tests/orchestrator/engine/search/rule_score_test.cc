#include "orchestrator/engine/search/rule_score.h"

#include <gtest/gtest.h>

#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

v1::Effect EffectOf(v1::Resource resource, v1::Direction direction) {
  v1::Effect effect;
  effect.set_resource(resource);
  effect.set_direction(direction);
  return effect;
}

v1::Variable VariableOf(const std::string& name, std::initializer_list<int> values, v1::Resource resource,
                        v1::Direction direction) {
  v1::Variable variable;
  variable.set_name(name);
  for (const int value : values) variable.add_values(value);
  *variable.add_affects() = EffectOf(resource, direction);
  return variable;
}

v1::Finding FindingOf(const std::string& rule, v1::Phase phase, v1::Resource wants, double severity, double deficit) {
  v1::Finding finding;
  finding.set_rule(rule);
  finding.set_phase(phase);
  *finding.add_wants() = EffectOf(wants, v1::DIRECTION_MORE);
  finding.set_severity(severity);
  finding.set_deficit(deficit);
  return finding;
}

RuleScore ScoreOf(std::vector<v1::Finding> findings, std::map<std::string, double> weights = {},
                  PatternScore patterns = {}) {
  return RuleScore(std::move(findings), std::move(weights), RuleSettings(), std::move(patterns));
}

const v1::Variable kTile = VariableOf("TILE", {16, 32, 64, 128}, v1::RESOURCE_PARALLELISM, v1::DIRECTION_LESS);
const v1::Variable kSplit = VariableOf("SPLIT", {1, 2, 4, 8, 16}, v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE);

TEST(RuleScore, IsPositiveOnlyInTheDirectionThatGivesWhatIsWanted) {
  const RuleScore score = ScoreOf({FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, 0.5)});
  EXPECT_GT(score.Of(kTile, 32, 16).log_gain, 0);
  EXPECT_EQ(score.Of(kTile, 32, 64).log_gain, 0);
  EXPECT_EQ(score.Of(kTile, 32, 64).served, nullptr);
  EXPECT_EQ(score.Of(kTile, 32, 16).served->rule(), "grid");
}

TEST(RuleScore, SizesTheStepByTheDeficit) {
  auto best_step = [](double deficit) {
    const RuleScore score = ScoreOf({FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, deficit)});
    int best = 0;
    double most = 0;
    for (const int to : {2, 4, 8, 16}) {
      const double gain = score.Of(kSplit, 1, to).log_gain;
      if (gain > most) best = to;
      most = std::max(most, gain);
    }
    return best;
  };
  EXPECT_EQ(best_step(0.5), 2);
  EXPECT_EQ(best_step(0.24), 4);
  EXPECT_EQ(best_step(0.001), 16);
}

TEST(RuleScore, PrefersTheNeighbourWhereValuesAreNotProportional) {
  const v1::Variable pad = VariableOf("PAD", {0, 1, 2, 4}, v1::RESOURCE_BANK_SPREAD, v1::DIRECTION_MORE);
  const RuleScore score = ScoreOf({FindingOf("banks", v1::PHASE_MEMORY, v1::RESOURCE_BANK_SPREAD, 1, 0.1)});
  EXPECT_GT(score.Of(pad, 0, 1).log_gain, score.Of(pad, 0, 2).log_gain);
  EXPECT_GT(score.Of(pad, 0, 2).log_gain, score.Of(pad, 0, 4).log_gain);
}

TEST(RuleScore, PrefersWhatAddsNoLaunchWhereBothGiveAsMuch) {
  v1::Variable combined = kSplit;
  v1::Effect* launches = combined.add_affects();
  launches->set_resource(v1::RESOURCE_LAUNCHES);
  launches->set_direction(v1::DIRECTION_MORE);
  const RuleScore score = ScoreOf({FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, 0.5)});
  EXPECT_LT(score.Of(combined, 1, 2).log_gain, score.Of(kSplit, 1, 2).log_gain);
  EXPECT_GT(score.Of(combined, 1, 2).log_gain, 0);
}

TEST(RuleScore, PutsEarlierPhasesFirst) {
  const v1::Variable width = VariableOf("VECTOR", {1, 2}, v1::RESOURCE_VECTOR_WIDTH, v1::DIRECTION_MORE);
  const RuleScore score = ScoreOf({FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 0.6, 0.5),
                                   FindingOf("narrow", v1::PHASE_MEMORY, v1::RESOURCE_VECTOR_WIDTH, 0.6, 0.5)});
  EXPECT_GT(score.Of(kSplit, 1, 2).log_gain, score.Of(width, 1, 2).log_gain);
}

TEST(RuleScore, ShrinksWithTheRulesWeight) {
  const v1::Finding finding = FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, 0.5);
  EXPECT_LT(ScoreOf({finding}, {{"grid", 0.36}}).Of(kSplit, 1, 2).log_gain,
            0.5 * ScoreOf({finding}).Of(kSplit, 1, 2).log_gain);
}

// A campaign whose iterations asked for this by the rule "grid", with what became of it.
double WeightAfter(std::initializer_list<std::pair<v1::Verdict, v1::Prediction::Outcome>> outcomes) {
  CampaignState campaign("campaigns/7", TinyBundle());
  int number = 0;
  for (const auto& [verdict, outcome] : outcomes) {
    v1::Event event;
    v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
    iteration.set_number(number++);
    iteration.set_verdict(verdict);
    iteration.mutable_finding()->set_rule("grid");
    iteration.mutable_prediction()->set_outcome(outcome);
    campaign.Apply(event);
  }
  return RuleWeights(campaign, RuleSettings()).at("grid");
}

TEST(RuleWeights, FallAfterAPredictionThatFailedAndRiseAfterOneThatCameTrue) {
  EXPECT_LT(WeightAfter({{v1::REVERTED, v1::Prediction::FAILED}}), 0.7);
  EXPECT_GT(WeightAfter({{v1::KEPT, v1::Prediction::CAME_TRUE}}), 1.1);
  const double kept_otherwise = WeightAfter({{v1::KEPT, v1::Prediction::FAILED}});
  EXPECT_LT(kept_otherwise, 1);
  EXPECT_GT(kept_otherwise, WeightAfter({{v1::REVERTED, v1::Prediction::FAILED}}));
}

TEST(RuleWeights, GoByTheVerdictWhereNobodyCheckedThePrediction) {
  EXPECT_LT(WeightAfter({{v1::REVERTED, v1::Prediction::UNCHECKED}}), 0.7);
  EXPECT_GT(WeightAfter({{v1::KEPT, v1::Prediction::UNCHECKED}}), 1.1);
}

TEST(RuleWeights, DoNotGoByWhatARecordingLacks) {
  CampaignState campaign("campaigns/7", TinyBundle());
  v1::Event event;
  v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
  iteration.set_verdict(v1::REJECTED);
  iteration.set_untried(true);
  iteration.mutable_finding()->set_rule("grid");
  iteration.mutable_prediction()->set_outcome(v1::Prediction::UNCHECKED);
  campaign.Apply(event);
  EXPECT_FALSE(RuleWeights(campaign, RuleSettings()).contains("grid"));
}

TEST(RuleWeights, AreBounded) {
  EXPECT_GT(WeightAfter({{v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED},
                         {v1::REVERTED, v1::Prediction::FAILED}}),
            0.04);
}

TEST(RuleScore, AsksThePatternsAboutWhatAChangeServes) {
  const v1::Finding finding = FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, 0.5);
  const PatternScore patterns = [](const v1::Finding& served, v1::Resource resource, v1::Direction direction) {
    EXPECT_EQ(served.rule(), "grid");
    EXPECT_EQ(resource, v1::RESOURCE_PARALLELISM);
    EXPECT_EQ(direction, v1::DIRECTION_MORE);
    return PatternGain{.log_gain = 0.4, .weight = 0.5};
  };
  EXPECT_DOUBLE_EQ(ScoreOf({finding}, {}, patterns).Of(kSplit, 1, 2).pattern_gain, 0.2);
  EXPECT_EQ(ScoreOf({finding}, {}, patterns).Of(kSplit, 2, 1).pattern_gain, 0);
}

TEST(RuleScore, SeesAGridThatDoesNotFillTheGpu) {
  v1::Finding finding = FindingOf("grid", v1::PHASE_PARALLELISM, v1::RESOURCE_PARALLELISM, 1, 0.5);
  EXPECT_EQ(ScoreOf({finding}).GridTooSmall(), nullptr);
  finding.add_seen()->set_metric("waves");
  finding.mutable_seen(0)->set_value(0.5);
  EXPECT_NE(ScoreOf({finding}).GridTooSmall(), nullptr);
  finding.mutable_seen(0)->set_value(1.5);
  EXPECT_EQ(ScoreOf({finding}).GridTooSmall(), nullptr);
}

}  // namespace
}  // namespace pawl
