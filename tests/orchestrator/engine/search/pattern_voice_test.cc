#include "orchestrator/engine/search/pattern_voice.h"

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

PatternGain Hear(std::initializer_list<v1::Pattern> patterns, const std::string& rule = "grid",
                 v1::Direction direction = v1::DIRECTION_MORE) {
  const google::protobuf::RepeatedPtrField<v1::Pattern> list(patterns.begin(), patterns.end());
  const PatternVoice voice = VoiceOf(list, "sm_90", "attention");
  v1::Finding finding;
  finding.set_rule(rule);
  return voice ? voice(finding, v1::RESOURCE_PARALLELISM, direction) : PatternGain();
}

TEST(PatternVoice, IsSilentWhereNothingIsKnown) {
  EXPECT_FALSE(VoiceOf({}, "sm_90", "attention"));
  const v1::Pattern known = PatternOf("", 20, 10, 1.2);
  EXPECT_GT(Hear({known}).weight, 0);
  EXPECT_EQ(Hear({known}, "tail").weight, 0);
  EXPECT_EQ(Hear({known}, "grid", v1::DIRECTION_LESS).weight, 0);
  google::protobuf::RepeatedPtrField<v1::Pattern> list;
  *list.Add() = known;
  EXPECT_FALSE(VoiceOf(list, "", "attention")) << "an unknown GPU";
}

TEST(PatternVoice, SpeaksForWhatGainedAndAgainstWhatWasSeldomKept) {
  const v1::Pattern good = PatternOf("", 20, 18, 1.3), bad = PatternOf("", 20, 1, 0.95, "sm_90", "tail");
  EXPECT_GT(Hear({good, bad}).log_gain, 0);
  EXPECT_LT(Hear({good, bad}, "tail").log_gain, 0);
  v1::Pattern rejected = PatternOf("", 20, 0, 0, "sm_90", "never-timed");
  rejected.set_timed(0);
  EXPECT_LT(Hear({good, rejected}, "never-timed").log_gain, 0) << "it always failed";
}

TEST(PatternVoice, IsSurerTheMoreWasTried) {
  const double few = Hear({PatternOf("", 3, 2, 1.2)}).weight, many = Hear({PatternOf("", 300, 200, 1.2)}).weight;
  EXPECT_GT(few, 0);
  EXPECT_GT(many, few);
  EXPECT_LT(many, 1);
}

TEST(PatternVoice, DoesNotTrustOneEnormousGain) { EXPECT_LT(Hear({PatternOf("", 20, 20, 50)}).log_gain, 1); }

TEST(PatternVoice, GoesByTheBundleItselfWhereItWasTriedOftenEnough) {
  const v1::Pattern all = PatternOf("", 100, 80, 1.4);
  const double over_all = Hear({all}).log_gain;
  EXPECT_LT(Hear({all, PatternOf("attention", 10, 0, 0.8)}).log_gain, 0);
  EXPECT_EQ(Hear({all, PatternOf("attention", 2, 0, 0.8)}).log_gain, over_all);
  EXPECT_EQ(Hear({all, PatternOf("softmax", 10, 0, 0.8)}).log_gain, over_all) << "another bundle's";
}

TEST(PatternVoice, HalvesTheWordOfANearArchitectureAndIgnoresOthers) {
  const double same = Hear({PatternOf("", 20, 18, 1.3)}).weight;
  EXPECT_EQ(Hear({PatternOf("", 20, 18, 1.3, "sm_91")}).weight, same / 2);
  EXPECT_EQ(Hear({PatternOf("", 20, 18, 1.3, "sm_89")}).weight, 0);
  EXPECT_EQ(Hear({PatternOf("", 20, 18, 1.3, "sm_100")}).weight, 0);
  EXPECT_EQ(Hear({PatternOf("", 20, 18, 1.3), PatternOf("", 200, 0, 0.5, "sm_91")}).weight, same)
      << "what the same architecture taught comes first";
  EXPECT_GT(Hear({PatternOf("", 20, 18, 1.3), PatternOf("", 200, 0, 0.5, "sm_91")}).log_gain, 0);
}

}  // namespace
}  // namespace pawl
