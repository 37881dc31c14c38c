// Variants with the same machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/inertness.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/ranking.h"
#include "orchestrator/engine/search/seeded_random.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;

v1::TrialResult SameCode() {
  v1::TrialResult result;
  result.set_same_code(true);
  result.set_device("NVIDIA H200");
  v1::StageTime& stage = *result.add_stages();
  stage.set_stage(v1::STAGE_BUILD);
  stage.set_seconds(1);
  return result;
}

v1::CampaignSpec Long() {
  v1::CampaignSpec spec;
  spec.mutable_goal()->set_speedup(INFINITY);
  return spec;
}

// MERGE does nothing without splits, and PAD nothing without stages. Without MERGE, splits need a second launch.
v1::Bundle BundleWithTwins() {
  v1::Bundle bundle = WideBundle();
  const auto add = [&](const std::string& name, std::initializer_list<int> values) {
    v1::Variable& variable = *bundle.add_variables();
    variable.set_name(name);
    for (const int value : values) variable.add_values(value);
    variable.set_start(*values.begin());
  };
  add("MERGE", {0, 1});
  add("STAGES", {1, 2, 3});
  add("PAD", {0, 8});
  add("WARPS", {4, 1, 2, 8});
  add("VECTOR", {1, 2, 4, 8});
  add("SWIZZLE", {0, 1});
  v1::Launch& combine = *bundle.add_launches();
  combine = bundle.launches(0);
  combine.set_entry("combine");
  combine.set_when("SPLIT > 1 && MERGE == 0");
  return bundle;
}

// Of all variants with the same code the same one.
v1::Variant Canonical(v1::Variant variant) {
  auto& values = *variant.mutable_values();
  if (values.at("SPLIT") == 1) values["MERGE"] = 0;
  if (values.at("STAGES") == 1) values["PAD"] = 0;
  return variant;
}

// Every value has an effect, and every two values have one together.
double Time(const v1::Variant& variant, const std::string& seed) {
  const v1::Variant code = Canonical(variant);
  const std::map<std::string, int> values(code.values().begin(), code.values().end());
  double log_time = 0;
  for (const auto& [a, at_a] : values) {
    log_time += 0.3 * SeededRandom(absl::StrCat(seed, a, "=", at_a), 0).Uniform();
    for (const auto& [b, at_b] : values) {
      if (b <= a) continue;
      log_time += 0.15 * SeededRandom(absl::StrCat(seed, a, "=", at_a, " ", b, "=", at_b), 0).Uniform();
    }
  }
  return 100 * std::exp(log_time);
}

// A campaign with what a worker would say of every choice.
struct Search {
  Search(const std::string& seed, int iterations) {
    const TreeChooser chooser;
    std::set<std::string> codes;
    while (static_cast<int>(script.state().iterations().size()) <= iterations) {
      const std::optional<v1::Event> next = script.Decide(chooser);
      if (!next || !next->has_planned()) break;
      const v1::TrialPlanned& planned = next->planned();
      const bool known = !codes.insert(VariantText(Canonical(planned.variant()))).second;
      again += known && planned.purpose() == v1::TRIAL_PURPOSE_ITERATION;
      script.Lease(planned.trial());
      if (!planned.has_parent()) {
        script.Finish(planned.trial(), MeasuredStart(Time(planned.variant(), seed)));
        continue;
      }
      const v1::Variant parent = VariantOf(*script.state().Find(planned.parent()));
      const bool same = VariantText(Canonical(parent)) == VariantText(Canonical(planned.variant()));
      const v1::TrialResult result = same ? SameCode() : Measured(Time(parent, seed), Time(planned.variant(), seed));
      if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
        script.FinishTotal(result);
      } else {
        script.Finish(planned.trial(), result);
      }
    }
    best_us = Time(VariantOf(*script.state().best()), seed);
  }

  CampaignScript script{Long(), BundleWithTwins()};
  int again = 0;  // changes whose code had been tried
  double best_us = 0;
};

TEST(TwinsTest, AreNotTriedAgainAndAgain) {
  int again = 0, same = 0;
  for (int i = 0; i < 20; ++i) {
    const Search search(absl::StrCat("seed ", i), 50);
    again += search.again;
    for (const v1::Iteration& iteration : search.script.state().iterations()) {
      same += &search.script.state().CodeOf(iteration) != &iteration;
      EXPECT_FALSE(&search.script.state().CodeOf(iteration) != &iteration && iteration.verdict() == v1::KEPT);
    }
  }
  EXPECT_GE(same, 20) << "there was nothing to learn from";
  EXPECT_LT(again, 70) << "92 where nothing is learned of it, 2 a campaign where all is";
}

TEST(TwinsTest, GiveTheSameDecisionsFromTheirEvents) {
  const Search search("replayed", 50);
  ASSERT_TRUE(search.script.state().HasTwins());
  const TreeChooser chooser;
  CampaignState replayed(search.script.summary().name(), BundleWithTwins());
  for (const v1::Event& event : search.script.events()) {
    if (event.has_planned() && event.planned().purpose() == v1::TRIAL_PURPOSE_ITERATION) {
      const std::optional<v1::Event> again = Decide(replayed, chooser, search.script.now());
      ASSERT_TRUE(again && again->has_planned());
      EXPECT_EQ(VariantText(again->planned().variant()), VariantText(event.planned().variant()));
      EXPECT_EQ(again->planned().parent(), event.planned().parent());
      EXPECT_EQ(again->planned().score().gain(), event.planned().score().gain());
    }
    replayed.Apply(event);
  }
}

Ranking Ranked(const CampaignScript& script) {
  const v1::Bundle& bundle = script.state().bundle();
  const RulePrior rules({}, bundle, PointOf(bundle, script.state().best()->variant()), {}, "sm_90", {});
  return RankChanges(script.state(), rules, {});
}

const RankedChange& Find(const Ranking& ranking, const std::string& variable, int to, int parent = 0) {
  for (const RankedChange& change : ranking.changes) {
    if (change.change.variable() == variable && change.change.to() == to && change.parent == parent) return change;
  }
  ADD_FAILURE() << variable << " to " << to << " is not ranked";
  return ranking.changes.front();
}

// The start, and MERGE=1 with its code.
class Twins : public testing::Test {
 protected:
  Twins() : script_(Long(), BundleWithTwins()) {
    script_.Run(MeasuredStart(100));
    Try("MERGE", 1, SameCode());
  }
  void Try(const std::string& variable, int to, const v1::TrialResult& result) {
    script_.Propose(variable, to);
    script_.Run(result);
  }
  CampaignScript script_;
};

TEST_F(Twins, HaveWhatWasMeasuredOfTheOther) {
  const CampaignState& state = script_.state();
  EXPECT_EQ(state.CodeOf(*state.Find(1)).number(), 0);
  EXPECT_EQ(state.CodeOf(*state.Find(0)).number(), 0);
  EXPECT_EQ(state.Find(1)->verdict(), v1::REVERTED);
  EXPECT_EQ(state.SpeedupOf(*state.Find(1)), 1);
  EXPECT_TRUE(state.IsMeasured(*state.Find(1)));
}

TEST_F(Twins, FallWithTheOther) {
  Try("UNROLL", 2, Measured(100, 80));
  Try("PAD", 8, SameCode());
  EXPECT_TRUE(script_.state().IsMeasured(*script_.state().Find(3)));
  v1::Event event;
  event.mutable_finished()->set_trial(1000);
  v1::RevisedIteration& revised = *event.mutable_finished()->add_revised();
  revised.set_number(2);
  revised.set_verdict(v1::REJECTED);
  revised.set_reason("it was found wrong");
  v1::Event planned;
  planned.mutable_planned()->set_trial(1000);
  planned.mutable_planned()->set_purpose(v1::TRIAL_PURPOSE_END);
  planned.mutable_planned()->set_iteration(2);
  script_.Apply(planned);
  script_.Apply(event);
  ASSERT_EQ(script_.state().Find(2)->verdict(), v1::REJECTED);
  EXPECT_FALSE(script_.state().IsMeasured(*script_.state().Find(3))) << "no step begins from code that is wrong";
  EXPECT_FALSE(script_.state().IsUnknown(*script_.state().Find(3))) << "nor is it tried again";
}

TEST_F(Twins, AreNotDifferentParents) {
  // The same change of the first comes first, but where the two have other launches.
  for (const RankedChange& change : Ranked(script_).changes) {
    const bool first = change.parent == 0 || change.change.variable() == "SPLIT";
    if (!change.examined) continue;
    if (first) {
      EXPECT_EQ(change.same_code, 0) << change.change.ShortDebugString();
    } else {
      EXPECT_THAT(change.same_code, AllOf(Gt(0.5), Lt(1))) << change.change.ShortDebugString();
    }
  }
}

TEST_F(Twins, MakeTheSameChangeElsewhereUnlikelyToGain) {
  Try("UNROLL", 2, Measured(100, 80));
  const RankedChange merge = Find(Ranked(script_), "MERGE", 1, 2);
  EXPECT_THAT(merge.same_code, AllOf(Gt(0.5), Lt(1))) << "it is not known";
  EXPECT_EQ(merge.twin, 2);
  EXPECT_TRUE(merge.examined) << "it can be tried";
  EXPECT_NEAR(merge.score.gain(), (1 - merge.same_code) * ExpectedImprovement(merge.log_speed, 0), 1e-9);
  const std::optional<Choice> choice = TreeChooser().Next(script_.state());
  ASSERT_TRUE(choice);
  const auto passed = std::find_if(choice->passed_over.begin(), choice->passed_over.end(),
                                   [](const auto& each) { return each.change().variable() == "MERGE"; });
  ASSERT_NE(passed, choice->passed_over.end());
  EXPECT_THAT(passed->reason(), HasSubstr("probably the machine code of iteration 2"));
}

TEST_F(Twins, AreNotWhatHasOtherLaunches) {
  Try("SPLIT", 2, Measured(100, 80));
  EXPECT_EQ(Find(Ranked(script_), "MERGE", 1, 2).same_code, 0) << "with splits, MERGE saves a launch";
}

TEST_F(Twins, AreNamedWhereTheyWereTried) {
  const std::optional<Choice> choice = TreeChooser().Next(script_.state());
  ASSERT_TRUE(choice);
  const auto passed = std::find_if(choice->passed_over.begin(), choice->passed_over.end(),
                                   [](const auto& each) { return each.change().variable() == "MERGE"; });
  ASSERT_NE(passed, choice->passed_over.end());
  EXPECT_EQ(passed->reason(), "already tried: iteration 1, reverted, the machine code of iteration 0");
}

// The last variable is changed.
TEST(InertnessTest, IsCertainOfNothing) {
  Inertness inertness;
  EXPECT_EQ(inertness.Same(2, {0, 0, 0}, 1), 0) << "nothing is known";
  inertness.Add(2, {0, 0, 0}, {0, 0, 1}, true);
  EXPECT_EQ(inertness.Same(1, {0, 0, 0}, 1), 0) << "nothing is known of another variable";
  const double here = inertness.Same(2, {0, 0, 0}, 1), near = inertness.Same(2, {1, 0, 0}, 1);
  const double far = inertness.Same(2, {1, 1, 0}, 1), other_value = inertness.Same(2, {0, 0, 0}, 2);
  EXPECT_LT(here, 1);
  EXPECT_LT(near, here);
  EXPECT_LT(far, near);
  EXPECT_LT(other_value, here);
  EXPECT_GT(far, 0.5);
  inertness.Add(2, {1, 0, 0}, {1, 0, 1}, true);
  EXPECT_GT(inertness.Same(2, {1, 1, 0}, 1), far) << "the first variable does not decide it";
}

TEST(InertnessTest, LearnsWhatDecidesIt) {
  Inertness inertness;
  inertness.Add(2, {0, 0, 0}, {0, 0, 1}, true);
  inertness.Add(2, {1, 0, 0}, {1, 0, 1}, false);
  EXPECT_LT(inertness.Same(2, {1, 0, 0}, 1), 0.15);
  EXPECT_LT(inertness.Same(2, {1, 1, 0}, 1), 0.15);
  EXPECT_GT(inertness.Same(2, {0, 1, 0}, 1), 0.8) << "it is the first variable that decides";
}

TEST(InertnessTest, DoubtsWhatWasContradicted) {
  Inertness inertness;
  inertness.Add(2, {0, 0, 0}, {0, 0, 1}, true);
  inertness.Add(2, {1, 1, 0}, {1, 1, 1}, true);
  const double before = inertness.Same(2, {0, 1, 0}, 1);
  inertness.Add(2, {1, 0, 0}, {1, 0, 1}, false);
  EXPECT_LT(inertness.Same(2, {0, 1, 0}, 1), before - 0.2);
}

}  // namespace
}  // namespace pawl
