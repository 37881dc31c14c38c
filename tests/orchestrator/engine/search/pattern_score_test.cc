#include "orchestrator/engine/search/pattern_score.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace pawl {
namespace {

// On finding "grid", more parallelism.
v1::Pattern PatternOf(const std::string& bundle, int tried, int kept, double median,
                      const std::string& architecture = "sm_90", const std::string& rule = "grid") {
  v1::Pattern pattern;
  pattern.set_rule(rule);
  pattern.mutable_effect()->set_resource(v1::RESOURCE_PARALLELISM);
  pattern.mutable_effect()->set_direction(v1::DIRECTION_MORE);
  pattern.set_architecture(architecture);
  pattern.set_bundle(bundle);
  pattern.set_tried(tried);
  pattern.set_kept(kept);
  pattern.set_timed(tried);
  pattern.set_median_gain(median);
  return pattern;
}

PatternGain GainOf(std::initializer_list<v1::Pattern> patterns, const std::string& rule = "grid",
                   v1::Direction direction = v1::DIRECTION_MORE) {
  const google::protobuf::RepeatedPtrField<v1::Pattern> list(patterns.begin(), patterns.end());
  const PatternScore score = PatternScoreOf(list, "sm_90", "attention");
  v1::Finding finding;
  finding.set_rule(rule);
  return score ? score(finding, v1::RESOURCE_PARALLELISM, direction) : PatternGain();
}

TEST(PatternScore, IsZeroWhereNothingIsKnown) {
  EXPECT_FALSE(PatternScoreOf({}, "sm_90", "attention"));
  const v1::Pattern known = PatternOf("", 20, 10, 1.2);
  EXPECT_GT(GainOf({known}).weight, 0);
  EXPECT_EQ(GainOf({known}, "tail").weight, 0);
  EXPECT_EQ(GainOf({known}, "grid", v1::DIRECTION_LESS).weight, 0);
  google::protobuf::RepeatedPtrField<v1::Pattern> list;
  *list.Add() = known;
  EXPECT_FALSE(PatternScoreOf(list, "", "attention")) << "an unknown GPU";
}

TEST(PatternScore, IsPositiveForWhatGainedAndNegativeForWhatWasSeldomKept) {
  const v1::Pattern good = PatternOf("", 20, 18, 1.3), bad = PatternOf("", 20, 1, 0.95, "sm_90", "tail");
  EXPECT_GT(GainOf({good, bad}).log_gain, 0);
  EXPECT_LT(GainOf({good, bad}, "tail").log_gain, 0);
  v1::Pattern rejected = PatternOf("", 20, 0, 0, "sm_90", "never-timed");
  rejected.set_timed(0);
  EXPECT_LT(GainOf({good, rejected}, "never-timed").log_gain, 0) << "it always failed";
}

TEST(PatternScore, HasMoreWeightTheMoreWasTried) {
  const double few = GainOf({PatternOf("", 3, 2, 1.2)}).weight, many = GainOf({PatternOf("", 300, 200, 1.2)}).weight;
  EXPECT_GT(few, 0);
  EXPECT_GT(many, few);
  EXPECT_LT(many, 1);
}

TEST(PatternScore, ClipsAnEnormousGain) { EXPECT_LT(GainOf({PatternOf("", 20, 20, 50)}).log_gain, 1); }

TEST(PatternScore, UsesTheBundlesOwnPatternWhereItWasTriedOftenEnough) {
  const v1::Pattern all = PatternOf("", 100, 80, 1.4);
  const double over_all = GainOf({all}).log_gain;
  EXPECT_LT(GainOf({all, PatternOf("attention", 10, 0, 0.8)}).log_gain, 0);
  EXPECT_EQ(GainOf({all, PatternOf("attention", 2, 0, 0.8)}).log_gain, over_all);
  EXPECT_EQ(GainOf({all, PatternOf("softmax", 10, 0, 0.8)}).log_gain, over_all) << "another bundle's";
}

TEST(PatternScore, HalvesTheWeightOfANearArchitectureAndIgnoresOthers) {
  const double same = GainOf({PatternOf("", 20, 18, 1.3)}).weight;
  EXPECT_EQ(GainOf({PatternOf("", 20, 18, 1.3, "sm_91")}).weight, same / 2);
  EXPECT_EQ(GainOf({PatternOf("", 20, 18, 1.3, "sm_89")}).weight, 0);
  EXPECT_EQ(GainOf({PatternOf("", 20, 18, 1.3, "sm_100")}).weight, 0);
  EXPECT_EQ(GainOf({PatternOf("", 20, 18, 1.3), PatternOf("", 200, 0, 0.5, "sm_91")}).weight, same)
      << "what the same architecture taught comes first";
  EXPECT_GT(GainOf({PatternOf("", 20, 18, 1.3), PatternOf("", 200, 0, 0.5, "sm_91")}).log_gain, 0);
}

}  // namespace
}  // namespace pawl
