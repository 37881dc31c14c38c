#include "worker/record/sample_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"
#include "worker/record/recorder.h"

namespace pawl {
namespace {

// Six variables of five values each; fast where they are large, but only with A at 4 do the others pay.
v1::Bundle Large() {
  v1::Bundle bundle;
  bundle.set_name("large");
  for (const char* name : {"A", "B", "C", "D", "E", "F"}) {
    v1::Variable& variable = *bundle.add_variables();
    variable.set_name(name);
    for (const int value : {0, 1, 2, 3, 4}) variable.add_values(value);
    variable.set_start(0);
  }
  return bundle;
}

std::optional<double> LogSpeedup(const v1::Variant& variant) {
  const auto at = [&](const char* name) { return variant.values().at(name); };
  if (at("B") == 3 && at("C") == 3) return std::nullopt;
  const double others = at("B") + at("C") + at("D") + at("E") + at("F");
  return 0.1 * at("A") + (at("A") == 4 ? 0.05 : -0.02) * others;
}

using Speed = std::function<std::optional<double>(const v1::Variant&)>;

// As the recorder goes about it: the next round is planned before this one is measured.
std::vector<v1::Variant> Walk(const v1::Bundle& bundle, int count, const Speed& speed = LogSpeedup) {
  SampleWalk walk(bundle, count);
  std::vector<v1::Variant> all;
  std::vector<v1::Variant> round = walk.NextRound().value();
  while (!round.empty()) {
    std::vector<v1::Variant> next = walk.NextRound().value();
    for (const v1::Variant& variant : round) walk.Learn(variant, speed(variant));
    all.insert(all.end(), round.begin(), round.end());
    round = next.empty() ? walk.NextRound().value() : next;
  }
  return all;
}

std::vector<std::string> Texts(const std::vector<v1::Variant>& variants) {
  std::vector<std::string> texts;
  for (const v1::Variant& variant : variants) texts.push_back(VariantText(variant));
  return texts;
}

int Distance(const v1::Variant& a, const v1::Variant& b) {
  int distance = 0;
  for (const auto& [name, value] : a.values()) distance += b.values().at(name) != value;
  return distance;
}

// How many of the variants one change away from it are in the sample.
int Neighbours(const std::vector<v1::Variant>& sample, const v1::Variant& of) {
  return std::count_if(sample.begin(), sample.end(),
                       [&](const v1::Variant& variant) { return Distance(variant, of) == 1; });
}

TEST(SampleWalk, GivesAsManyAsAskedForEachOnceAndConnected) {
  for (const int count : {1, 2, 20, 300}) {
    const std::vector<v1::Variant> sample = Walk(Large(), count);
    ASSERT_EQ(sample.size(), count);
    const std::vector<std::string> texts = Texts(sample);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), count);
    EXPECT_EQ(texts[0], VariantText(StartVariant(Large())));
    for (size_t i = 1; i < sample.size(); ++i) {
      EXPECT_TRUE(std::any_of(sample.begin(), sample.begin() + i, [&](const v1::Variant& before) {
        return Distance(before, sample[i]) == 1;
      })) << texts[i];
    }
  }
}

TEST(SampleWalk, KnowsTheWholeSurroundingsOfTheStartAndOfTheBest) {
  const std::vector<v1::Variant> sample = Walk(Large(), 400);
  EXPECT_EQ(Neighbours(sample, sample[0]), 24);
  std::vector<v1::Variant> fastest = sample;
  std::stable_sort(fastest.begin(), fastest.end(), [](const v1::Variant& a, const v1::Variant& b) {
    return LogSpeedup(a).value_or(-9) > LogSpeedup(b).value_or(-9);
  });
  EXPECT_GT(*LogSpeedup(fastest[0]), 1.2);  // of 1.4; a walk by nearness comes to 0.45
  EXPECT_EQ(Neighbours(sample, fastest[0]), 24);
}

TEST(SampleWalk, AlsoGoesWhereNothingIsFast) {
  const std::vector<v1::Variant> sample = Walk(Large(), 400);
  const int slow = std::count_if(sample.begin(), sample.end(), [&](const v1::Variant& variant) {
    return LogSpeedup(variant).value_or(0) < 0 && Distance(variant, sample[0]) > 2;
  });
  EXPECT_GT(slow, 10);
}

TEST(SampleWalk, GivesTheSameForTheSameMeasurementsAndOtherwiseWhatTheySay) {
  const std::vector<std::string> texts = Texts(Walk(Large(), 300));
  EXPECT_EQ(texts, Texts(Walk(Large(), 300)));
  const Speed reversed = [](const v1::Variant& variant) -> std::optional<double> {
    const std::optional<double> speed = LogSpeedup(variant);
    return speed ? std::optional<double>(-*speed) : std::nullopt;
  };
  EXPECT_NE(texts, Texts(Walk(Large(), 300, reversed)));
}

TEST(SampleWalk, ReachesAllThatSingleChangesReachAlsoBehindFailures) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const std::vector<std::string> reached = Texts(ConnectedSample(bundle, 1000).value());
  for (const bool fails : {false, true}) {
    const std::vector<std::string> texts =
        Texts(Walk(bundle, 1000, [&](const v1::Variant&) { return fails ? std::nullopt : std::optional<double>(0); }));
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), std::set<std::string>(reached.begin(), reached.end()));
    EXPECT_EQ(texts.size(), reached.size());
  }
}

TEST(SampleWalk, PassesOnThatAConstraintCantBeEvaluated) {
  v1::Bundle bundle = Large();
  bundle.add_constraints()->set_that("NO_SUCH_NAME > 1");
  SampleWalk walk(bundle, 10);
  EXPECT_TRUE(walk.NextRound().ok());  // the start
  EXPECT_FALSE(walk.NextRound().ok());
}

}  // namespace
}  // namespace pawl
