#include "worker/record/build_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

std::vector<v1::Variant> Variants(int count) {
  std::vector<v1::Variant> variants(count);
  for (int i = 0; i < count; ++i) (*variants[i].mutable_values())["I"] = i;
  return variants;
}

int Number(const v1::Variant& variant) { return variant.values().at("I"); }

BuiltVariant Built(const v1::Variant& variant) {
  BuiltVariant built;
  built.variant = variant;
  return built;
}

TEST(BuildAhead, GivesThemInOrderWhicheverIsDoneFirst) {
  const std::vector<v1::Variant> variants = Variants(40);
  std::promise<void> second_done;
  BuildAhead builds(
      variants,
      [&](const v1::Variant& variant) {
        if (Number(variant) == 0) second_done.get_future().wait();  // the first is done after the second
        if (Number(variant) == 1) second_done.set_value();
        return Built(variant);
      },
      3);
  for (int i = 0; i < 40; ++i) {
    const absl::StatusOr<BuiltVariant> built = builds.Next();
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(Number(built->variant), i);
  }
}

TEST(BuildAhead, TakesMoreWhenAllThatItHadIsBuilt) {
  BuildAhead builds(
      {}, [](const v1::Variant& variant) { return Built(variant); }, 2);
  const std::vector<v1::Variant> variants = Variants(9);
  for (int first = 0; first < 9; first += 3) {
    builds.Add({variants.begin() + first, variants.begin() + first + 3});
    for (int i = first; i < first + 3; ++i) EXPECT_EQ(Number(builds.Next().value().variant), i);
  }
}

TEST(BuildAhead, PassesFailuresOnInTheirPlace) {
  const std::vector<v1::Variant> variants = Variants(4);
  BuildAhead builds(
      variants,
      [](const v1::Variant& variant) -> absl::StatusOr<BuiltVariant> {
        if (Number(variant) == 1) return absl::InternalError("no compiler");
        BuiltVariant built = Built(variant);
        if (Number(variant) == 2) built.failure.emplace().set_check(v1::CHECK_COMPILE);
        return built;
      },
      2);
  EXPECT_FALSE(builds.Next().value().failure.has_value());
  EXPECT_EQ(builds.Next().status().message(), "no compiler");
  EXPECT_EQ(builds.Next().value().failure->check(), v1::CHECK_COMPILE);
  EXPECT_FALSE(builds.Next().value().failure.has_value());
}

TEST(BuildAhead, StaysABoundedNumberAhead) {
  constexpr int kThreads = 2, kAhead = 2 * kThreads;
  const std::vector<v1::Variant> variants = Variants(200);
  std::atomic<int> taken = 0, started = 0;
  BuildAhead builds(
      variants,
      [&](const v1::Variant& variant) {
        EXPECT_LT(Number(variant), taken + kAhead);
        ++started;
        started.notify_all();
        return Built(variant);
      },
      kThreads);
  for (int i = 0; i < 200; ++i) {
    ++taken;
    ASSERT_EQ(Number(builds.Next().value().variant), i);
    // And it does build ahead: all that it may is started without anyone waiting for it.
    for (int seen = started; seen < std::min(200, taken + kAhead); seen = started) started.wait(seen);
  }
}

TEST(BuildAhead, EndsEarlyWithoutBuildingTheRest) {
  const std::vector<v1::Variant> variants = Variants(1000);
  std::atomic<int> started = 0;
  {
    BuildAhead builds(
        variants,
        [&](const v1::Variant& variant) {
          ++started;
          return Built(variant);
        },
        2);
    EXPECT_TRUE(builds.Next().ok());
  }
  EXPECT_LE(started, 1 + 4);
}

TEST(BuildAhead, WaitsForABuildUnderWayWhenItEndsEarly) {
  const std::vector<v1::Variant> variants = Variants(1);
  std::promise<void> begun, go_on;
  std::atomic<bool> done = false;
  auto builds = std::make_unique<BuildAhead>(
      variants,
      [&](const v1::Variant& variant) {
        begun.set_value();
        go_on.get_future().wait();
        done = true;
        return Built(variant);
      },
      1);
  begun.get_future().wait();
  std::future<void> destroyed = std::async(std::launch::async, [&] { builds.reset(); });
  go_on.set_value();
  destroyed.get();
  EXPECT_TRUE(done);
}

TEST(BuildAhead, EndsWithNothingToBuild) {
  const std::vector<v1::Variant> none;
  BuildAhead builds(
      none, [](const v1::Variant& variant) { return Built(variant); }, 4);
}

}  // namespace
}  // namespace pawl
