// What the tree chooses on evidence that was measured on a real GPU.
#include "orchestrator/engine/search/tree_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/decide.h"
#include "orchestrator/engine/search/single_change.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const MeasuredSpace& Recorded(const std::string& bundle) {
  static auto& spaces = *new std::map<std::string, MeasuredSpace>;
  if (!spaces.contains(bundle)) spaces[bundle] = RecordedSpace(getenv("PAWL_SOURCE_DIR"), bundle).value();
  return spaces[bundle];
}

v1::CampaignSpec NoGoal() {
  v1::CampaignSpec spec;
  spec.mutable_goal()->set_speedup(INFINITY);
  return spec;
}

// A campaign over a recording, with the tree as its chooser.
class RecordedCampaign {
 public:
  explicit RecordedCampaign(const std::string& bundle) : RecordedCampaign(Recorded(bundle)) {}
  explicit RecordedCampaign(const MeasuredSpace& space) : space_(space), script_(NoGoal(), space_.bundle), noise_(1) {}

  const CampaignState& state() const { return script_.state(); }
  const std::vector<v1::Event>& events() const { return script_.events(); }

  // Nothing: the campaign has ended.
  std::optional<v1::TrialPlanned> Step(const Chooser& chooser) {
    std::optional<v1::Event> event = script_.Decide(chooser);
    while (event && event->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      script_.FinishTotal(Measured(event->planned()));
      event = script_.Decide(chooser);
    }
    if (!event || !event->has_planned()) return std::nullopt;
    const v1::TrialPlanned& planned = event->planned();
    script_.Lease(planned.trial());
    script_.Finish(planned.trial(), Measured(planned));
    return planned;
  }
  // Opens one more iteration.
  std::optional<v1::TrialPlanned> Plan(const Chooser& chooser, int slots) {
    const std::optional<v1::Event> event =
        Decide(script_.state(), chooser, script_.now(), ProfileSet::Default(), slots);
    if (!event || !event->has_planned()) return std::nullopt;
    script_.Apply(*event);
    return event->planned();
  }
  // Trials that the recording could answer.
  int evaluations() const { return evaluations_; }
  double ShareOfBest() const { return std::exp(space_.Find(state().best()->variant())->log_speed - space_.best); }

 private:
  v1::TrialResult Measured(const v1::TrialPlanned& planned) {
    const MeasuredSpace::Entry* parent =
        planned.has_parent() ? space_.Find(state().Find(planned.parent())->variant()) : nullptr;
    if (const MeasuredSpace::Entry* candidate = space_.Find(planned.variant().values())) {
      ++evaluations_;
      return space_.Measure(*candidate, parent, planned.noise(), noise_);
    }
    v1::TrialResult result;
    result.set_passed_over("not recorded");
    return result;
  }

  const MeasuredSpace& space_;
  CampaignScript script_;
  SeededRandom noise_;
  int evaluations_ = 0;
};

TEST(TreeChooser, ChoosesNothingBeforeThereIsAStart) {
  EXPECT_FALSE(TreeChooser().Next(CampaignScript().state()).has_value());
}

TEST(TreeChooser, AddsParallelismFirstWhereAttentionStartsWithTwoBlocks) {
  RecordedCampaign campaign("attention");
  campaign.Step(TreeChooser());
  const Choice choice = TreeChooser().Next(campaign.state()).value();
  // KV_SPLITS from 1 to 4 gives as many blocks, but adds a launch.
  EXPECT_EQ(choice.change.variable(), "TILE_M");
  EXPECT_EQ(choice.change.from(), 64);
  EXPECT_EQ(choice.change.to(), 16) << "2 blocks for 132 SMs ask for the largest step";
  EXPECT_EQ(choice.finding.value().rule(), "grid-too-small");
  EXPECT_EQ(choice.prediction.value().metric(), "waves");
  EXPECT_EQ(choice.prediction->direction(), v1::DIRECTION_MORE);
  EXPECT_GT(choice.prediction->low(), 1);
  EXPECT_LE(choice.prediction->high(), 4);
  EXPECT_THAT(choice.why, HasSubstr("grid-too-small: TILE_M from 64 to 16 gives more parallelism"));
  EXPECT_GT(choice.score.value().rules(), 0);
}

TEST(TreeChooser, LetsNoLaterPhaseChooseWhileTheGridIsTooSmall) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  campaign.Step(chooser);
  // If measurements contradict a value or a direction, the rule's term is discounted, and a change for another phase
  // may be chosen.
  const auto spoken_against = [&](const std::string& variable, int32_t value) {
    const auto& iterations = campaign.state().iterations();
    return std::any_of(iterations.begin(), iterations.end(), [&](const v1::Iteration& iteration) {
      const v1::Change& change = iteration.change();
      if (change.variable() != variable || campaign.state().IsUntried(iteration.number())) return false;
      if (iteration.verdict() == v1::KEPT) return change.from() == value;
      const bool from_best = iteration.parent() == campaign.state().best()->number();
      return change.to() == value || (from_best && (change.to() > change.from()) == (value > change.from()));
    });
  };
  int looked_at = 0;
  for (int i = 0; i < 20; ++i) {
    const std::optional<Choice> choice = chooser.Next(campaign.state());
    ASSERT_TRUE(choice);
    bool too_small = false;
    for (const v1::Finding& finding : DecisionTree::Default().Diagnose(campaign.state().best_evidence(), {})) {
      too_small = too_small || finding.rule() == "grid-too-small";
    }
    const v1::Iteration& best = *campaign.state().best();
    bool left = false;
    v1::Finding wanted;
    wanted.add_wants()->set_resource(v1::RESOURCE_PARALLELISM);
    wanted.mutable_wants(0)->set_direction(v1::DIRECTION_MORE);
    for (const v1::Variable& variable : campaign.state().bundle().variables()) {
      for (const int32_t value : variable.values()) {
        if (spoken_against(variable.name(), value)) continue;
        v1::Change change;
        change.set_variable(variable.name());
        change.set_from(best.variant().at(variable.name()));
        change.set_to(value);
        std::string why;
        const std::optional<v1::Variant> variant = Changed(campaign.state(), best, change, &why);
        if (variant && !campaign.state().Tried(*variant, 0) && Serves(campaign.state().bundle(), change, wanted))
          left = true;
      }
    }
    if (too_small && left) {
      ++looked_at;
      EXPECT_TRUE(Serves(campaign.state().bundle(), choice->change, wanted)) << choice->why;
      EXPECT_EQ(choice->parent, best.number());
    }
    campaign.Step(chooser);
  }
  EXPECT_GT(looked_at, 1);
}

TEST(TreeChooser, ForcesMoreBlocksOnlyWhereMeasurementsLeftEnoughOfThem) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  TreeSettings demanding;
  demanding.min_discount = INFINITY;
  const auto forced = [&](const TreeChooser& by) {
    return by.Next(campaign.state())->why.find("so parallelism comes first") != std::string::npos;
  };
  int seen = 0;
  for (int i = 0; i < 20; ++i) {
    campaign.Step(chooser);
    if (!forced(chooser)) continue;
    ++seen;
    EXPECT_FALSE(forced(TreeChooser(DecisionTree::Default(), demanding)));
  }
  EXPECT_GT(seen, 0);
}

TEST(TreeChooser, PadsTheTileOfATransposeWithBankConflicts) {
  RecordedCampaign campaign("transpose");
  campaign.Step(TreeChooser());
  const Choice choice = TreeChooser().Next(campaign.state()).value();
  EXPECT_EQ(choice.change.variable(), "PAD");
  EXPECT_EQ(choice.finding.value().rule(), "bank-conflicts");
}

TEST(TreeChooser, SaysOfEveryOtherChangeWhyItWasPassedOver) {
  RecordedCampaign campaign("softmax");
  const TreeChooser chooser;
  for (int i = 0; i < 6; ++i) campaign.Step(chooser);
  const Choice choice = chooser.Next(campaign.state()).value();
  ASSERT_EQ(choice.parent, campaign.state().best()->number());
  int changes = 0;
  for (const v1::Variable& variable : campaign.state().bundle().variables()) changes += variable.values_size() - 1;
  EXPECT_EQ(static_cast<int>(choice.passed_over.size()), changes - 1);
  for (const v1::PassedOver& passed : choice.passed_over) {
    EXPECT_THAT(passed.reason(), testing::AnyOf(HasSubstr("already tried: iteration"), HasSubstr("ranks lower"),
                                                HasSubstr("a constraint forbids it")));
  }
}

TEST(TreeChooser, ComesWithinATenthOfTheBestInTwentyEvaluations) {
  for (const char* bundle : {"attention", "reduce_sum", "rmsnorm", "softmax", "transpose"}) {
    RecordedCampaign campaign(bundle);
    const TreeChooser chooser;
    while (campaign.evaluations() < 20 && campaign.Step(chooser)) {
    }
    EXPECT_GE(campaign.ShareOfBest(), 1 / 1.1) << bundle;
  }
}

TEST(TreeChooser, ChangesOneVariableOfAKeptVariantUntilNothingIsLeft) {
  for (const char* bundle : {"attention", "softmax", "transpose"}) {
    RecordedCampaign campaign(bundle);
    const TreeChooser chooser;
    int branches = 0;
    for (int i = 0; i < 150; ++i) {
      const std::optional<v1::TrialPlanned> planned = campaign.Step(chooser);
      if (!planned) break;
      if (!planned->has_parent()) continue;
      const v1::Iteration& parent = *campaign.state().Find(planned->parent());
      EXPECT_EQ(parent.verdict(), v1::KEPT);
      EXPECT_EQ(Differences(VariantOf(parent), planned->variant()), 1);
      if (planned->why().find("no change of the best variant") != std::string::npos) ++branches;
    }
    EXPECT_NE(campaign.state().summary().state(), v1::FAILED);
    EXPECT_GT(branches, 0) << bundle;
  }
}

TEST(TreeChooser, ChoosesTheSameBytesOfTheSameEvents) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  CampaignState again("campaigns/7", Recorded("attention").bundle);
  size_t applied = 0;
  for (int i = 0; i < 40; ++i) {
    campaign.Step(chooser);
    for (; applied < campaign.events().size(); ++applied) again.Apply(campaign.events()[applied]);
    const std::optional<Choice> a = chooser.Next(campaign.state()), b = TreeChooser().Next(again);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) break;
    EXPECT_EQ(a->change.SerializeAsString(), b->change.SerializeAsString());
    EXPECT_EQ(a->parent, b->parent);
    EXPECT_EQ(a->why, b->why);
    ASSERT_EQ(a->passed_over.size(), b->passed_over.size());
    for (size_t k = 0; k < a->passed_over.size(); ++k) {
      EXPECT_EQ(a->passed_over[k].SerializeAsString(), b->passed_over[k].SerializeAsString());
    }
  }
}

TEST(TreeChooser, TriesOtherChangesOfTheSameParentInARound) {
  RecordedCampaign campaign("softmax");
  const TreeChooser chooser;
  for (int i = 0; i < 4; ++i) campaign.Step(chooser);
  std::set<std::string> variants;
  std::set<int> parents;
  for (int i = 0; i < 4; ++i) {
    const std::optional<v1::TrialPlanned> planned = campaign.Plan(chooser, 4);
    ASSERT_TRUE(planned) << i;
    variants.insert(VariantText(planned->variant()));
    parents.insert(planned->parent());
  }
  EXPECT_EQ(variants.size(), 4u);
  EXPECT_EQ(parents.size(), 1u);
}

TEST(TreeChooser, JoinsNoRoundForAChangeWithALowScore) {
  RecordedCampaign campaign("transpose");
  const TreeChooser chooser;
  for (int i = 0; i < 4; ++i) campaign.Step(chooser);
  int joined = 0;
  while (joined < 1000 && campaign.Plan(chooser, 1000)) ++joined;
  EXPECT_GT(joined, 1);
  EXPECT_LT(joined, 1000);
  TreeSettings demanding;
  demanding.min_joining_score = INFINITY;
  EXPECT_FALSE(TreeChooser(DecisionTree::Default(), demanding).Next(campaign.state()).has_value());
}

TEST(TreeChooser, GivesTheScoreAndFindingsBehindAChoice) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  campaign.Step(chooser);
  const Choice choice = chooser.Next(campaign.state()).value();
  ASSERT_TRUE(choice.score);
  EXPECT_GT(choice.score->rules(), 0);
  ASSERT_TRUE(choice.effect);
  EXPECT_EQ(choice.effect->resource(), v1::RESOURCE_PARALLELISM);
  ASSERT_FALSE(choice.findings.empty());
  EXPECT_EQ(choice.findings[0].rule(), choice.finding.value().rule());
  int ranked = 0;
  for (const v1::PassedOver& passed : choice.passed_over) {
    if (!passed.has_score()) continue;
    ++ranked;
    EXPECT_THAT(passed.reason(), testing::AnyOf(HasSubstr("ranks lower"), HasSubstr("parallelism comes first")));
  }
  EXPECT_GT(ranked, 0);
}

TEST(TreeChooser, TakesWeightFromARuleThatMisled) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  std::map<std::string, double> before;
  int misled = 0;
  for (int i = 0; i < 40; ++i) {
    if (!campaign.Step(chooser)) break;
    const std::map<std::string, double> after = RuleWeights(campaign.state(), RuleSettings());
    const v1::Iteration& last = campaign.state().iterations().back();
    if (last.has_finding() && last.verdict() == v1::REVERTED) {
      const auto was = before.find(last.finding().rule());
      const double had = was == before.end() ? 1 : was->second;
      if (had <= 0.05) continue;  // no rule is silenced
      EXPECT_LT(after.at(last.finding().rule()), had);
      ++misled;
    }
    before = after;
  }
  EXPECT_GT(misled, 0);
}

TEST(TreeChooser, ChoosesByTheModelWhereThereIsNoEvidence) {
  MeasuredSpace space = Recorded("reduce_sum");
  for (MeasuredSpace::Entry& entry : space.entries) {
    entry.counted.Clear();
    entry.uncounted.Clear();
  }
  RecordedCampaign campaign(space);
  const TreeChooser chooser;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(campaign.Step(chooser)->has_finding());
  EXPECT_GT(campaign.state().summary().speedup_over_start(), 1.5);
}

TEST(TreeChooser, ChoosesInUnderFiveMilliseconds) {
  RecordedCampaign campaign("attention");
  const TreeChooser chooser;
  for (int i = 0; i < 200 && campaign.Step(chooser); ++i) {
  }
  const auto cpu_seconds = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double least = INFINITY;  // the machine may be busy
  for (int i = 0; i < 5; ++i) {
    const double begin = cpu_seconds();
    chooser.Next(campaign.state());
    least = std::min(least, cpu_seconds() - begin);
  }
  EXPECT_LT(least, 0.005 * kSlowdown);
}

TEST(RecordedBundles, HaveASpaceAndNotOnlyTheWayOfACampaign) {
  const std::vector<std::string> bundles = RecordedBundles(getenv("PAWL_SOURCE_DIR")).value();
  EXPECT_THAT(bundles, testing::Contains("attention"));  // a sample, to which a campaign's variants were added
  EXPECT_THAT(bundles, testing::Not(testing::Contains("gemm")));
}

}  // namespace
}  // namespace pawl
