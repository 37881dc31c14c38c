#include "orchestrator/engine/search/rule_prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>

namespace pawl {
namespace {

v1::Effect EffectOf(v1::Resource resource, v1::Direction direction) {
  v1::Effect effect;
  effect.set_resource(resource);
  effect.set_direction(direction);
  return effect;
}

void AddVariable(const std::string& name, std::initializer_list<int> values, v1::Resource resource,
                 v1::Direction direction, v1::Bundle* bundle) {
  v1::Variable& variable = *bundle->add_variables();
  variable.set_name(name);
  for (const int value : values) variable.add_values(value);
  *variable.add_affects() = EffectOf(resource, direction);
}

v1::Bundle SomeBundle() {
  v1::Bundle bundle;
  bundle.set_name("attention");
  AddVariable("TILE", {16, 32, 64, 128}, v1::RESOURCE_PARALLELISM, v1::DIRECTION_LESS, &bundle);
  AddVariable("SPLIT", {1, 2, 4, 8, 16}, v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE, &bundle);
  AddVariable("PAD", {0, 1, 2, 4}, v1::RESOURCE_BANK_SPREAD, v1::DIRECTION_MORE, &bundle);
  return bundle;
}
constexpr size_t kSplit = 1;
const Point kBest = {1, 0, 0};  // TILE=32, SPLIT=1, PAD=0

v1::Finding FindingOf(const std::string& rule, v1::Resource wants, double severity, double deficit) {
  v1::Finding finding;
  finding.set_rule(rule);
  finding.set_phase(v1::PHASE_PARALLELISM);
  *finding.add_wants() = EffectOf(wants, v1::DIRECTION_MORE);
  finding.set_severity(severity);
  finding.set_deficit(deficit);
  return finding;
}

using PatternList = google::protobuf::RepeatedPtrField<v1::Pattern>;

struct Prior : RulePrior {
  explicit Prior(const v1::Finding& finding, const PatternList& patterns = {})
      : RulePrior({finding}, SomeBundle(), kBest, patterns, "sm_90", {}) {}
};

TEST(RulePrior, ExpectsAGainOnlyInTheDirectionThatGivesWhatIsWanted) {
  const Prior prior(FindingOf("grid", v1::RESOURCE_PARALLELISM, 1, 0.5));
  EXPECT_GT(prior.Rules({0, 0, 0}), 0);
  EXPECT_EQ(prior.Rules({2, 0, 0}), 0) << "what the other direction costs is measured";
  EXPECT_EQ(prior.Rules({1, 0, 1}), 0);
  EXPECT_EQ(prior.Rules(kBest), 0);
  EXPECT_EQ(prior.ServedBy(0, 0).finding->rule(), "grid");
  EXPECT_EQ(prior.ServedBy(0, 2).finding, nullptr);
}

TEST(RulePrior, SizesTheStepByTheDeficit) {
  const auto best_step = [](double deficit) {
    const Prior prior(FindingOf("grid", v1::RESOURCE_PARALLELISM, 1, deficit));
    int best = 0;
    double most = 0;
    for (uint16_t place = 1; place < 5; ++place) {
      const double gain = prior.Rules({1, place, 0});
      if (gain > most) best = SomeBundle().variables(kSplit).values(place);
      most = std::max(most, gain);
    }
    return best;
  };
  EXPECT_EQ(best_step(0.5), 2);
  EXPECT_EQ(best_step(0.24), 4);
  EXPECT_EQ(best_step(0.001), 16);
}

TEST(RulePrior, PrefersTheNeighbourWhereValuesAreNotProportional) {
  const Prior prior(FindingOf("banks", v1::RESOURCE_BANK_SPREAD, 1, 0.1));
  EXPECT_GT(prior.Rules({1, 0, 1}), prior.Rules({1, 0, 2}));
  EXPECT_GT(prior.Rules({1, 0, 2}), prior.Rules({1, 0, 3}));
}

TEST(RulePrior, ExpectsMoreOfASevererFinding) {
  EXPECT_GT(Prior(FindingOf("grid", v1::RESOURCE_PARALLELISM, 0.9, 0.5)).Rules({1, 1, 0}),
            Prior(FindingOf("grid", v1::RESOURCE_PARALLELISM, 0.3, 0.5)).Rules({1, 1, 0}));
}

// On finding "grid", more parallelism.
v1::Pattern PatternOf(const std::string& bundle, int tried, double median, const std::string& architecture = "sm_90") {
  v1::Pattern pattern;
  pattern.set_rule("grid");
  *pattern.mutable_effect() = EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE);
  pattern.set_architecture(architecture);
  pattern.set_bundle(bundle);
  pattern.set_tried(tried);
  pattern.set_timed(tried);
  pattern.set_median_gain(median);
  return pattern;
}

PatternList ListOf(std::initializer_list<v1::Pattern> patterns) { return {patterns.begin(), patterns.end()}; }

double WorthAfter(std::initializer_list<v1::Pattern> patterns) {
  return WorthOf(ListOf(patterns), "grid", EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE), "sm_90", "attention",
                 0.3, {})
      .mean;
}

TEST(Worth, IsThePriorWhereNothingIsKnown) {
  EXPECT_DOUBLE_EQ(WorthAfter({}), 0.3);
  EXPECT_DOUBLE_EQ(WorthOf(ListOf({PatternOf("", 100, 1)}), "tail",
                           EffectOf(v1::RESOURCE_PARALLELISM, v1::DIRECTION_MORE), "sm_90", "attention", 0.3, {})
                       .mean,
                   0.3);
}

TEST(Worth, ComesNearerToWhatWasMeasuredTheMoreWasTried) {
  const double few = WorthAfter({PatternOf("", 3, 1)}), many = WorthAfter({PatternOf("", 300, 1)});
  EXPECT_LT(few, 0.3);
  EXPECT_LT(many, few);
  EXPECT_NEAR(many, 0, 0.02);
}

TEST(Worth, CountsATrialThatFailedAsNoGain) {
  v1::Pattern failed = PatternOf("", 20, 1.5);
  failed.set_timed(10);
  EXPECT_LT(WorthAfter({failed}), WorthAfter({PatternOf("", 20, 1.5)}));
}

TEST(Worth, ClipsAnEnormousGain) { EXPECT_LT(WorthAfter({PatternOf("", 200, 50)}), 0.6); }

TEST(Worth, GoesByTheArchitectureAndTheBundleWhereTheyDiffer) {
  const v1::Pattern all = PatternOf("", 50, 1.4);
  const double over_all = WorthAfter({all});
  EXPECT_LT(WorthAfter({all, PatternOf("attention", 50, 0.9)}), 0.1);
  EXPECT_DOUBLE_EQ(WorthAfter({all, PatternOf("softmax", 50, 0.9)}), over_all) << "another bundle's";
  EXPECT_LT(WorthAfter({PatternOf("", 50, 0.9, "sm_80")}), 0.1) << "better than nothing";
  EXPECT_GT(WorthAfter({PatternOf("", 50, 0.9, "sm_80"), all}), 0.15) << "this architecture's count more";
}

TEST(RulePrior, SaysWhatPatternsAddToTheRules) {
  const v1::Finding finding = FindingOf("grid", v1::RESOURCE_PARALLELISM, 1, 0.5);
  const Prior plain(finding), known(finding, ListOf({PatternOf("", 100, 1.0)}));
  EXPECT_EQ(plain.Patterns({1, 1, 0}), 0);
  EXPECT_LT(known.Patterns({1, 1, 0}), 0);
  EXPECT_DOUBLE_EQ(known.Rules({1, 1, 0}), plain.Rules({1, 1, 0}));
  EXPECT_LT(known.causes()[0].sd, plain.causes()[0].sd);
}

TEST(RulePrior, SeesAGridThatDoesNotFillTheGpu) {
  v1::Finding finding = FindingOf("grid", v1::RESOURCE_PARALLELISM, 1, 0.5);
  EXPECT_EQ(Prior(finding).GridTooSmall(), nullptr);
  finding.add_seen()->set_metric("waves");
  finding.mutable_seen(0)->set_value(0.5);
  EXPECT_NE(Prior(finding).GridTooSmall(), nullptr);
  finding.mutable_seen(0)->set_value(1.5);
  EXPECT_EQ(Prior(finding).GridTooSmall(), nullptr);
}

}  // namespace
}  // namespace pawl
