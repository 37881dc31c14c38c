// What the tree chooses on evidence that was measured on a real GPU.
#include "orchestrator/engine/search/tree_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/next_event.h"
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
    while (event && event->has_planned() && event->planned().purpose() != v1::TRIAL_PURPOSE_ITERATION) {
      const v1::TrialPlanned planned = event->planned();
      const v1::TrialResult result = Measured(planned, /*counts=*/false);
      if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
        script_.FinishTotal(result);
      } else {
        script_.Lease(planned.trial());
        script_.Finish(planned.trial(), result);
      }
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
  v1::TrialResult Measured(const v1::TrialPlanned& planned, bool counts = true) {
    const MeasuredSpace::Entry* parent =
        planned.has_parent() ? space_.Find(state().Find(planned.parent())->variant()) : nullptr;
    if (const MeasuredSpace::Entry* candidate = space_.Find(planned.variant().values())) {
      evaluations_ += counts;
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
  EXPECT_GT(choice.prediction->high(), 1);
  EXPECT_LT(choice.prediction->low(), choice.prediction->high());
  EXPECT_THAT(choice.why, HasSubstr("grid-too-small: TILE_M from 64 to 16 gives more parallelism"));
  EXPECT_GT(choice.score.value().rules(), 0);
}

TEST(TreeChooser, LetsNoLaterPhaseChooseWhileTheGridIsTooSmall) {
  const TreeChooser chooser;
  v1::Finding wanted;
  wanted.add_wants()->set_resource(v1::RESOURCE_PARALLELISM);
  wanted.mutable_wants(0)->set_direction(v1::DIRECTION_MORE);
  int looked_at = 0, starts = 0;
  MeasuredSpace space = Recorded("attention");
  for (const MeasuredSpace::Entry& entry : Recorded("attention").entries) {
    const auto& start = entry.variant.values();
    if (!entry.ok || start.at("TILE_M") < 64 || start.at("KV_SPLITS") > 1 || starts == 5) continue;
    ++starts;
    for (v1::Variable& variable : *space.bundle.mutable_variables()) variable.set_start(start.at(variable.name()));
    RecordedCampaign campaign(space);
    campaign.Step(chooser);
    for (int i = 0; i < 20; ++i) {
      const std::optional<Choice> choice = chooser.Next(campaign.state());
      if (!choice) break;
      bool too_small = false;
      for (const v1::Finding& finding : DecisionTree::Default().Diagnose(campaign.state().best_evidence(), {})) {
        too_small = too_small || finding.rule() == "grid-too-small";
      }
      // Of what is left, only changes that measurements do not speak against count: the posterior expects a gain.
      bool left = false;
      for (const v1::PassedOver& passed : choice->passed_over) {
        const v1::Score& score = passed.score();
        left = left || (score.rules() + score.model() + score.patterns() > 0 &&
                        Serves(campaign.state().bundle(), passed.change(), wanted));
      }
      if (too_small && left && choice->parent == campaign.state().best()->number()) {
        ++looked_at;
        EXPECT_TRUE(Serves(campaign.state().bundle(), choice->change, wanted)) << choice->why;
      }
      campaign.Step(chooser);
    }
  }
  EXPECT_GT(looked_at, 1);
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
  campaign.Step(chooser);
  campaign.Step(chooser);
  Choice choice = chooser.Next(campaign.state()).value();
  for (int i = 0; i < 20 && choice.parent != campaign.state().best()->number(); ++i) {  // not of an expedition
    campaign.Step(chooser);
    choice = chooser.Next(campaign.state()).value();
  }
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

TEST(TreeChooser, ChangesOneVariableOfAMeasuredVariantUntilItExpectsTooLittle) {
  for (const char* bundle : {"attention", "softmax", "transpose"}) {
    RecordedCampaign campaign(bundle);
    const TreeChooser chooser;
    int expeditions = 0;
    for (int i = 0; i < 150; ++i) {
      const std::optional<v1::TrialPlanned> planned = campaign.Step(chooser);
      if (!planned) break;
      if (!planned->has_parent()) continue;
      const v1::Iteration& parent = *campaign.state().Find(planned->parent());
      EXPECT_TRUE(campaign.state().IsMeasured(parent));
      EXPECT_EQ(Differences(VariantOf(parent), planned->variant()), 1);
      expeditions += planned->expedition();
      const v1::Iteration& judged = campaign.state().iterations().back();
      const bool kept = judged.expedition() && judged.verdict() == v1::KEPT;
      EXPECT_TRUE(!kept || judged.over_best().result() == v1::FASTER);
    }
    EXPECT_NE(campaign.state().summary().state(), v1::FAILED);
    EXPECT_GT(expeditions, 0) << bundle;
  }
}

TEST(TreeChooser, PredictsIntervalsThatHoldFourOfFiveOutcomes) {
  int made = 0, held = 0;
  for (const char* bundle : {"attention", "reduce_sum", "rmsnorm", "softmax", "transpose"}) {
    RecordedCampaign campaign(bundle);
    const TreeChooser chooser;
    for (int i = 0; i < 60 && campaign.Step(chooser); ++i) {
    }
    for (const v1::Iteration& iteration : campaign.state().iterations()) {
      if (!iteration.has_prediction() || !iteration.has_interval()) continue;
      ++made;
      held += iteration.prediction().time_outcome() == v1::Prediction::CAME_TRUE;
    }
  }
  EXPECT_GT(made, 100);
  EXPECT_GE(held, 0.70 * made);
  EXPECT_LE(held, 0.92 * made);
}

TEST(TreeChooser, EndsWhereEveryTrialFails) {
  MeasuredSpace space = Recorded("reduce_sum");
  const MeasuredSpace::Entry* start = space.Find(StartVariant(space.bundle).values());
  for (MeasuredSpace::Entry& entry : space.entries) entry.ok = &entry == start;
  RecordedCampaign campaign(space);
  const TreeChooser chooser;
  int steps = 0;
  while (steps < 1000 && campaign.Step(chooser)) ++steps;
  EXPECT_LT(steps, 1000);
  EXPECT_EQ(campaign.state().summary().state(), v1::FINISHED);
}

// A GPU that throttles: the same two variants compare differently each time.
TEST(TreeChooser, EndsWhereMeasurementsContradictEachOther) {
  CampaignScript script(NoGoal(), WideBundle());
  const TreeChooser chooser;
  SeededRandom random(3);
  int trials = 0;
  for (; trials < 1000; ++trials) {
    const std::optional<v1::Event> event = script.Decide(chooser);
    ASSERT_TRUE(event);
    if (!event->has_planned()) break;
    const v1::TrialPlanned planned = event->planned();
    const v1::TrialResult result =
        planned.has_parent() ? Measured(100, 100 * std::exp(random.Uniform() - 0.5)) : MeasuredStart(100);
    if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      script.FinishTotal(result);
    } else {
      script.Lease(planned.trial());
      script.Finish(planned.trial(), result);
    }
  }
  EXPECT_LT(trials, 1000);
  EXPECT_EQ(script.summary().state(), v1::FINISHED);
  EXPECT_THAT(script.events().back().ended().message(),
              testing::AnyOf(HasSubstr("no change is left to try"), HasSubstr("no change is expected to gain")));
}

// Every step, of expeditions too, loses a fifth. The best variant's four changes come first; what follows are
// expeditions of which the posterior expects more than the least gain.
TEST(TreeChooser, TriesNothingTwiceInATinySpaceAndEndsBeforeItIsUsedUp) {
  CampaignScript script(NoGoal(), TinyBundle());
  const TreeChooser chooser;
  std::set<std::string> tried;
  std::vector<int> parents;
  for (std::optional<v1::Event> event = script.Decide(chooser); event->has_planned(); event = script.Decide(chooser)) {
    const v1::TrialPlanned planned = event->planned();
    ASSERT_EQ(planned.purpose(), v1::TRIAL_PURPOSE_ITERATION);
    EXPECT_TRUE(tried.insert(VariantText(planned.variant())).second);
    parents.push_back(planned.parent());
    script.Lease(planned.trial());
    script.Finish(planned.trial(), planned.has_parent() ? Measured(100, 120) : MeasuredStart(100));
  }
  ASSERT_GE(parents.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(parents[i], 0);
  EXPECT_LT(tried.size(), 8u) << "all that constraints allow";
  RecordProperty("trials", static_cast<int>(tried.size()));
}

TEST(TreeChooser, EndsAtOnceInASpaceOfOneVariant) {
  v1::Bundle bundle = TinyBundle();
  for (v1::Variable& variable : *bundle.mutable_variables()) {
    variable.clear_values();
    variable.add_values(variable.start());
  }
  CampaignScript script(NoGoal(), bundle);
  script.Run(MeasuredStart(100));
  const std::optional<v1::Event> event = script.Decide(TreeChooser());
  ASSERT_TRUE(event && event->has_ended());
  EXPECT_EQ(event->ended().reason(), v1::STOP_REASON_SPACE);
  EXPECT_EQ(event->ended().message(), "no change is left to try");
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

TEST(TreeChooser, JoinsNoRoundForAChangeOfWhichTooLittleIsExpected) {
  RecordedCampaign campaign("transpose");
  const TreeChooser chooser;
  for (int i = 0; i < 4; ++i) campaign.Step(chooser);
  int joined = 0;
  while (joined < 1000 && campaign.Plan(chooser, 1000)) ++joined;
  EXPECT_GT(joined, 1);
  EXPECT_LT(joined, 1000);
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
  int ranked = 0;
  for (const v1::PassedOver& passed : choice.passed_over) {
    if (!passed.has_score()) continue;
    ++ranked;
    EXPECT_THAT(passed.reason(), testing::AnyOf(HasSubstr("ranks lower"), HasSubstr("parallelism comes first")));
  }
  EXPECT_GT(ranked, 0);
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

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr int kTimedChoices = 8;
constexpr int kMostTries = 30;  // the machine may be busy
// Between them: a virtual machine whose host is busy computes at half its speed for seconds, by CPU time as well.
constexpr absl::Duration kPause = absl::Seconds(2);

// Mean CPU time of the next choices of a campaign that runs, fits of the parameters included. `step` measures one more.
double SecondsOfAChoice(const CampaignState& campaign, const std::function<void()>& step) {
  const TreeChooser chooser;
  double seconds = 0;
  for (int i = 0; i < kTimedChoices; ++i) {
    const double begin = CpuSeconds();
    EXPECT_TRUE(chooser.Next(campaign));
    seconds += CpuSeconds() - begin;
    step();
  }
  return seconds / kTimedChoices;
}

TEST(TreeChooser, ChoosesInUnderAMillisecondInAttentionsSpace) {
  const TreeChooser chooser;
  constexpr double kLimit = 0.001 * kSlowdown;
  double least = INFINITY;
  for (int i = 0; i < kMostTries && least >= kLimit; ++i) {
    if (i > 0) absl::SleepFor(kPause);
    RecordedCampaign campaign("attention");
    while (campaign.evaluations() < 20 - kTimedChoices / 2 && campaign.Step(chooser)) {
    }
    least = std::min(least, SecondsOfAChoice(campaign.state(), [&] { campaign.Step(chooser); }));
  }
  RecordProperty("microseconds", static_cast<int>(1e6 * least));
  EXPECT_LT(least, kLimit);
}

// A random untried change of a random measured variant.
class RandomChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    const v1::Bundle& bundle = campaign.bundle();
    SeededRandom random("choice", static_cast<uint64_t>(campaign.next_iteration()));
    while (true) {
      const v1::Iteration& parent = campaign.iterations()[random.Below(campaign.iterations().size())];
      const v1::Variable& variable = bundle.variables(static_cast<int>(random.Below(bundle.variables_size())));
      Choice choice;
      choice.parent = parent.number();
      choice.change.set_variable(variable.name());
      choice.change.set_from(parent.variant().at(variable.name()));
      choice.change.set_to(variable.values(static_cast<int>(random.Below(variable.values_size()))));
      std::string why;
      std::optional<v1::Variant> variant = Changed(campaign, parent, choice.change, &why);
      if (!variant || choice.change.from() == choice.change.to()) continue;
      choice.variant = *std::move(variant);
      return choice;
    }
  }
};

// Each with the values from 1, and 1 at the start.
v1::Bundle BundleOfVariables(int variables, int values) {
  v1::Bundle bundle = TinyBundle();
  bundle.clear_variables();
  bundle.clear_constraints();
  bundle.clear_launches();
  for (int i = 0; i < variables; ++i) {
    v1::Variable& variable = *bundle.add_variables();
    variable.set_name(absl::StrCat("V", i));
    for (int value = 1; value <= values; ++value) variable.add_values(value);
    variable.set_start(1);
  }
  return bundle;
}

// What a variable did not do at one variant it is not expected to do at the next.
TEST(TreeChooser, TriesEachOfManyVariablesBeforeItTriesAChangeAgainElsewhere) {
  const auto microseconds = [](const google::protobuf::Map<std::string, int32_t>& variant) {
    return 100.0 * (variant.at("V7") > 1 ? 4 : 1) * (variant.at("V19") > 1 ? 2 : 1);
  };
  CampaignScript script(NoGoal(), BundleOfVariables(40, 4));
  script.Run(MeasuredStart(100));
  std::set<std::string> variables;
  const TreeChooser chooser;
  for (int i = 0; i < 36; ++i) {
    const v1::TrialPlanned planned = script.Decide(chooser)->planned();
    ASSERT_EQ(planned.purpose(), v1::TRIAL_PURPOSE_ITERATION);
    variables.insert(planned.change().variable());
    script.Lease(planned.trial());
    script.Finish(planned.trial(), Measured(microseconds(script.state().Find(planned.parent())->variant()),
                                            microseconds(planned.variant().values())));
  }
  EXPECT_GE(variables.size(), 32u);
}

// The start is the fastest variant: every variable slows the others down.
double MicrosecondsOf(const google::protobuf::Map<std::string, int32_t>& variant) {
  int sum = 0;
  for (const auto& [name, value] : variant) sum += value - 1;
  return 100 * std::exp(0.02 * sum);
}

TEST(TreeChooser, ChoosesInTimeInALargeSpace) {
  struct Case {
    int variables, values, measured;
    double seconds;
  };
  for (const Case& one : {Case{20, 5, 300, 0.005}, Case{100, 4, 2000, 0.05}}) {
    CampaignScript script(NoGoal(), BundleOfVariables(one.variables, one.values));
    const RandomChooser chooser;
    const auto step = [&] {
      const v1::TrialPlanned planned = script.Decide(chooser)->planned();
      EXPECT_EQ(planned.purpose(), v1::TRIAL_PURPOSE_ITERATION);
      script.Lease(planned.trial());
      const double us = MicrosecondsOf(planned.variant().values());
      script.Finish(planned.trial(),
                    planned.has_parent()
                        ? Measured(MicrosecondsOf(script.state().Find(planned.parent())->variant()), us)
                        : MeasuredStart(us));
    };
    while (script.state().next_iteration() < one.measured) step();
    TreeChooser().Next(script.state());  // reads what a running campaign has read before
    double least = INFINITY;
    const double limit = one.seconds * kSlowdown;
    for (int i = 0; i < kMostTries && least >= limit; ++i) {
      if (i > 0) absl::SleepFor(kPause);
      least = std::min(least, SecondsOfAChoice(script.state(), step));
    }
    RecordProperty(absl::StrCat("microseconds_", one.variables, "_variables"), static_cast<int>(1e6 * least));
    EXPECT_LT(least, limit) << one.variables << " variables";
  }
}

TEST(RecordedBundles, HaveASpaceAndNotOnlyTheWayOfACampaign) {
  const std::vector<std::string> bundles = RecordedBundles(getenv("PAWL_SOURCE_DIR")).value();
  EXPECT_THAT(bundles, testing::Contains("attention"));  // a sample, to which a campaign's variants were added
  EXPECT_THAT(bundles, testing::Not(testing::Contains("gemm")));
}

}  // namespace
}  // namespace pawl
