#include "worker/runner/wall_clock.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr int kRounds = 8, kAgainst = 3, kForAfterDoubt = 2;
constexpr double kMostRuns = 1000;  // a few milliseconds

}  // namespace

absl::StatusOr<WallClock> JudgeWallClock(const std::function<absl::StatusOr<bool>()>& own_agrees,
                                         const std::function<absl::StatusOr<bool>()>& call_agrees) {
  absl::StatusOr<bool> quiet = own_agrees();
  if (!quiet.ok()) return quiet.status();
  int agreed = 0, against = 0;
  for (int round = 0; round < kRounds && against < kAgainst; ++round) {
    const absl::StatusOr<bool> agrees = call_agrees();
    if (!agrees.ok()) return agrees.status();
    agreed += *agrees;
    if (*agrees && (round == 0 || agreed == kForAfterDoubt)) return WallClock::kAgrees;
    const bool was_quiet = *quiet;
    quiet = own_agrees();
    if (!quiet.ok()) return quiet.status();
    against += !*agrees && was_quiet && *quiet;
  }
  return against == kAgainst ? WallClock::kDisagrees : WallClock::kUnsteady;
}

int OwnRuns(double call_us, double own_us) {
  return own_us > 0 ? static_cast<int>(std::clamp(std::ceil(call_us / own_us), 1.0, kMostRuns)) : 1;
}

}  // namespace pawl
