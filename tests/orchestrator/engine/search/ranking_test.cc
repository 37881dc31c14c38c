#include "orchestrator/engine/search/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

// A finding that asks for four times the parallelism; without it nothing is known before measuring.
std::vector<v1::Finding> AsksForParallelism() {
  v1::Finding finding;
  finding.set_rule("a-rule");
  finding.set_phase(v1::PHASE_MEMORY);
  finding.set_severity(1);
  finding.set_deficit(0.25);
  v1::Effect& wanted = *finding.add_wants();
  wanted.set_resource(v1::RESOURCE_PARALLELISM);
  wanted.set_direction(v1::DIRECTION_MORE);
  return {finding};
}

Ranking Rank(const CampaignScript& script, const std::vector<v1::Finding>& findings = {},
             const RankingSettings& settings = {}) {
  const v1::Bundle& bundle = script.state().bundle();
  const RulePrior rules(findings, bundle, PointOf(bundle, script.state().best()->variant()), {}, "sm_90", {});
  Ranking ranking = RankChanges(script.state(), rules, settings);
  for (RankedChange& change : ranking.changes) change.served.finding = nullptr;  // of the prior
  return ranking;
}

const RankedChange* Find(const Ranking& ranking, const std::string& variable, int to, int parent) {
  for (const RankedChange& change : ranking.changes) {
    if (change.change.variable() == variable && change.change.to() == to && change.parent == parent) return &change;
  }
  return nullptr;
}

RankedChange Ranked(const CampaignScript& script, const std::string& variable, int to,
                    const std::vector<v1::Finding>& findings = {}) {
  const Ranking ranking = Rank(script, findings);
  const RankedChange* change = Find(ranking, variable, to, script.state().best()->number());
  if (change != nullptr) return *change;
  ADD_FAILURE() << variable << " to " << to << " is not ranked";
  return {};
}

void Try(CampaignScript* script, const std::string& variable, int to, const v1::TrialResult& result) {
  script->Propose(variable, to);
  script->Run(result);
}

TEST(Ranking, GivesThePosteriorOfEveryAllowedChange) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  for (const RankedChange& change : Rank(script, AsksForParallelism()).changes) {
    ASSERT_TRUE(change.examined);
    const v1::Score& score = change.score;
    EXPECT_NEAR(score.rules() + score.model() + score.patterns(), change.log_speed.mean, 1e-9);
    EXPECT_GT(score.sd(), 0);
    EXPECT_GT(score.gain(), 0);
    EXPECT_EQ(score.valid(), 1) << "nothing failed yet";
    EXPECT_EQ(score.seconds(), 2) << "what the start took";
  }
}

TEST(Ranking, ExpectsMoreOfWhatARuleAsksFor) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  const RankedChange split = Ranked(script, "SPLIT", 4, AsksForParallelism());
  EXPECT_GT(split.score.rules(), 0);
  EXPECT_GT(split.score.gain(), Ranked(script, "TILE", 64, AsksForParallelism()).score.gain());
  EXPECT_EQ(Ranked(script, "SPLIT", 4).score.rules(), 0);
}

TEST(Ranking, ExpectsLessOfARuleThatMisled) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  const double before = Ranked(script, "TILE", 16, AsksForParallelism()).log_speed.mean;
  Try(&script, "SPLIT", 2, Measured(100, 150));
  EXPECT_LT(Ranked(script, "TILE", 16, AsksForParallelism()).log_speed.mean, before)
      << "another variable that gives the same";
}

TEST(Ranking, DoesNotLearnFromAChangeThatARecordingLacks) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  const double before = Ranked(script, "SPLIT", 4).log_speed.mean;
  v1::TrialResult lacking;
  lacking.set_passed_over("not recorded");
  Try(&script, "SPLIT", 2, lacking);
  EXPECT_DOUBLE_EQ(Ranked(script, "SPLIT", 4).log_speed.mean, before);
}

TEST(Ranking, ExpectsFailuresNearFailures) {
  CampaignScript script({}, WideBundle());
  script.Run(MeasuredStart(100));
  Try(&script, "UNROLL", 4, FailedCheck(v1::CHECK_FAULT, "an illegal address"));
  const double near = Ranked(script, "UNROLL", 8).score.valid(), far = Ranked(script, "SPLIT", 4).score.valid();
  EXPECT_LT(near, far);
  EXPECT_LT(far, 1);
  EXPECT_GT(near, 0);
}

TEST(Ranking, PrefersWhatTakesLessTime) {
  CampaignScript script({}, WideBundle());
  script.Run(MeasuredStart(100));
  v1::TrialResult slow = Measured(100, 120);
  slow.mutable_stages(0)->set_seconds(200);
  Try(&script, "UNROLL", 4, slow);
  EXPECT_GT(Ranked(script, "UNROLL", 8).score.seconds(), Ranked(script, "SPLIT", 2).score.seconds());
}

TEST(Ranking, ConsidersChangesOfVariantsThatAreNotTheBest) {
  CampaignScript script({}, WideBundle());
  script.Run(MeasuredStart(100));
  Try(&script, "UNROLL", 4, Measured(100, 100));
  const Ranking ranking = Rank(script);
  EXPECT_NE(Find(ranking, "SPLIT", 2, 0), nullptr);
  const bool expeditions = std::any_of(ranking.changes.begin(), ranking.changes.end(),
                                       [](const RankedChange& change) { return change.parent == 1; });
  EXPECT_TRUE(expeditions);
}

TEST(Ranking, CountsWhatAChangeAllowsAfterIt) {
  v1::Bundle bundle = ParallelBundle(64);
  bundle.mutable_variables(0)->clear_affects();
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  // TILE=64 with SPLIT=4 is forbidden, TILE=32 with SPLIT=4 is not.
  const RankedChange smaller = Ranked(script, "TILE", 32, AsksForParallelism());
  ASSERT_TRUE(smaller.unlocks);
  EXPECT_EQ(smaller.unlocks->variable(), "SPLIT");
  EXPECT_EQ(smaller.unlocks->to(), 4);
  EXPECT_GT(smaller.score.gain(), ExpectedImprovement(smaller.log_speed, 0));
  EXPECT_FALSE(Ranked(script, "SPLIT", 2, AsksForParallelism()).unlocks);
  EXPECT_FALSE(Ranked(script, "SPLIT", 4, AsksForParallelism()).examined);
}

TEST(Ranking, UnlocksNothingWhereNothingIsForbidden) {
  v1::Bundle bundle = ParallelBundle(32);
  bundle.clear_constraints();
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  EXPECT_FALSE(Ranked(script, "TILE", 16, AsksForParallelism()).unlocks);
  EXPECT_FALSE(Ranked(script, "SPLIT", 4, AsksForParallelism()).unlocks);
}

TEST(Ranking, RanksOnlyWhatExists) {
  CampaignScript script({}, ParallelBundle(32));
  script.Run(MeasuredStart(100));
  RankingSettings settings;
  settings.exists = [](const v1::Variant& variant) { return variant.values().at("SPLIT") == 1; };
  for (const RankedChange& change : Rank(script, {}, settings).changes) {
    EXPECT_EQ(change.examined, change.change.variable() == "TILE");
  }
}

// 40 variables of two values: 10^12 variants.
v1::Bundle VastBundle() {
  v1::Bundle bundle = TinyBundle();
  bundle.clear_variables();
  bundle.clear_constraints();
  for (int i = 0; i < 40; ++i) {
    v1::Variable& variable = *bundle.add_variables();
    variable.set_name(absl::StrCat("V", i));
    variable.add_values(1);
    variable.add_values(2);
    variable.set_start(1);
  }
  return bundle;
}

TEST(Ranking, ListsNoVastSpace) {
  CampaignScript script({}, VastBundle());
  script.Run(MeasuredStart(100));
  EXPECT_EQ(Rank(script).changes.size(), 40u);
}

TEST(Ranking, RanksNothingInASpaceOfOneVariant) {
  v1::Bundle bundle = TinyBundle();
  for (v1::Variable& variable : *bundle.mutable_variables()) {
    variable.clear_values();
    variable.add_values(variable.start());
  }
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  EXPECT_TRUE(Rank(script).changes.empty());
}

}  // namespace
}  // namespace pawl
