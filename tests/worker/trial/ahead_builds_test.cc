// Variants that are built before they are asked for.
#include "worker/trial/ahead_builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace pawl {
namespace {

const Stopped kNever = [] { return false; };

AheadBuilds::Build Named(const std::string& log) {
  return [log](const Stopped&) -> absl::StatusOr<AheadVariant> {
    AheadVariant variant;
    variant.built.log = log;
    return variant;
  };
}

// Until the variant was built; "" where it never is.
std::string LogOf(AheadBuilds& builds, const std::string& key) {
  for (int tries = 0; tries < 500; ++tries) {
    if (std::optional<AheadVariant> taken = builds.Take(key, kNever)) return taken->built.log;
    absl::SleepFor(absl::Milliseconds(2));
    builds.Expect({{key, Named("again")}});
  }
  return "";
}

TEST(AheadBuildsTest, GivesAVariantOnce) {
  AheadBuilds builds(2);
  absl::Notification done;
  builds.Expect({{"a", [&](const Stopped& stopped) {
                    auto built = Named("first")(stopped);
                    done.Notify();
                    return built;
                  }}});
  done.WaitForNotification();
  EXPECT_EQ(builds.Take("a", kNever)->built.log, "first") << "waits for what is being built";
  EXPECT_FALSE(builds.Take("a", kNever));
  EXPECT_FALSE(builds.Take("b", kNever));
}

TEST(AheadBuildsTest, ForgetsWhatIsNoLongerExpected) {
  AheadBuilds builds(1);
  absl::Notification begun, go_on;
  builds.Expect({{"slow",
                  [&](const Stopped& stopped) {
                    begun.Notify();
                    go_on.WaitForNotification();
                    return Named("slow")(stopped);
                  }},
                 {"in vain", Named("in vain")}});
  begun.WaitForNotification();
  absl::Notification next;
  builds.Expect({{"next", [&](const Stopped& stopped) {
                    next.Notify();
                    return Named("next")(stopped);
                  }}});
  EXPECT_FALSE(builds.Take("in vain", kNever)) << "its turn never came";
  go_on.Notify();
  EXPECT_EQ(builds.Take("slow", kNever)->built.log, "slow");
  next.WaitForNotification();  // until then it could still be taken back
  EXPECT_EQ(LogOf(builds, "next"), "next");
}

TEST(AheadBuildsTest, LeavesWhatCannotBeBuiltToTheTrial) {
  AheadBuilds builds(1);
  absl::Notification failed;
  builds.Expect({{"a", [&](const Stopped&) -> absl::StatusOr<AheadVariant> {
                    failed.Notify();
                    return absl::InternalError("a builder died");
                  }}});
  failed.WaitForNotification();
  EXPECT_FALSE(builds.Take("a", kNever));
}

TEST(AheadBuildsTest, LeavesWhatFailedToTheTrial) {
  AheadBuilds builds(1);
  absl::Notification done;
  builds.Expect({{"a", [&](const Stopped&) -> absl::StatusOr<AheadVariant> {
                    AheadVariant variant;
                    variant.built.failure.emplace().set_message("the compiler took longer than 60 s");
                    done.Notify();
                    return variant;
                  }}});
  done.WaitForNotification();
  EXPECT_FALSE(builds.Take("a", kNever)) << "on a machine that is less busy it may build";
}

TEST(AheadBuildsTest, EndsWhatRunsWithItself) {
  absl::Notification begun;
  bool ended = false;
  {
    AheadBuilds builds(1);
    builds.Expect({{"a", [&](const Stopped& stopped) -> absl::StatusOr<AheadVariant> {
                      begun.Notify();
                      while (!stopped()) absl::SleepFor(absl::Milliseconds(1));
                      ended = true;
                      return absl::CancelledError("stopped");
                    }}});
    begun.WaitForNotification();
    EXPECT_FALSE(builds.Take("a", [] { return true; })) << "a trial that is no longer wanted does not wait";
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace pawl
