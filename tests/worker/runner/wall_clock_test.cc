#include "worker/runner/wall_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pawl {
namespace {

// What one finds of Pawl's own kernel and of calls, in turns: '+' agrees, '-' does not. The last goes on.
WallClock Judged(const std::string& own, const std::string& calls) {
  size_t next_own = 0, next_call = 0;
  const auto next = [](const std::string& of, size_t* at) -> absl::StatusOr<bool> {
    return of[std::min((*at)++, of.size() - 1)] == '+';
  };
  return *JudgeWallClock([&] { return next(own, &next_own); }, [&] { return next(calls, &next_call); });
}

TEST(WallClockTest, BelievesACallThatAgreesAtOnce) { EXPECT_EQ(Judged("+", "+"), WallClock::kAgrees); }

TEST(WallClockTest, RejectsWorkOutsideOfWhatIsTimedWhereTheMachineIsQuiet) {
  EXPECT_EQ(Judged("+", "-"), WallClock::kDisagrees);
  EXPECT_EQ(Judged("+", "-+--"), WallClock::kDisagrees) << "one call that agrees does not excuse the others";
}

TEST(WallClockTest, BelievesCallsThatABusyMachineDelayedAtFirst) {
  EXPECT_EQ(Judged("-+", "-++"), WallClock::kAgrees);
  EXPECT_EQ(Judged("+", "-++"), WallClock::kAgrees) << "once by chance";
}

TEST(WallClockTest, FindsTheMachineUnsteadyWhereItDelaysPawlsOwnKernelAsWell) {
  EXPECT_EQ(Judged("-", "-"), WallClock::kUnsteady);
  EXPECT_EQ(Judged("+-", "-"), WallClock::kUnsteady) << "quiet before a call is not enough";
  EXPECT_EQ(Judged("-", "-+-"), WallClock::kUnsteady) << "one that agrees may be one that hides nothing this time";
}

TEST(WallClockTest, PassesOnWhatFails) {
  const auto fails = []() -> absl::StatusOr<bool> { return absl::InternalError("lost"); };
  const auto agrees = []() -> absl::StatusOr<bool> { return true; };
  EXPECT_EQ(JudgeWallClock(fails, agrees).status().message(), "lost");
  EXPECT_EQ(JudgeWallClock(agrees, fails).status().message(), "lost");
}

TEST(WallClockTest, RunsPawlsOwnKernelForAsLongAsACallTakes) {
  EXPECT_EQ(OwnRuns(0, 0), 1) << "nothing is known yet";
  EXPECT_EQ(OwnRuns(2, 4), 1);
  EXPECT_EQ(OwnRuns(110, 4), 28);
  EXPECT_EQ(OwnRuns(5e6, 4), 1000) << "no longer than it takes to see other work";
}

}  // namespace
}  // namespace pawl
