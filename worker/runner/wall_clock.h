#pragma once

#include <chrono>
#include <functional>

#include "absl/status/statusor.h"

namespace pawl {

// By the wall clock.
inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

enum class WallClock {
  kAgrees,     // with the GPU's events, about calls
  kDisagrees,  // about calls, and agrees about Pawl's own kernel before and after them: work runs outside of what is
               // timed
  kUnsteady,   // neither could be shown: other work on the machine makes one look like the other
};

// Calls and Pawl's own kernel, which hides nothing, take turns until it is clear. A call that agrees at once is enough;
// after one that does not it takes two, so that work which is hidden in most calls is not missed on a busy machine.
absl::StatusOr<WallClock> JudgeWallClock(const std::function<absl::StatusOr<bool>()>& own_agrees,
                                         const std::function<absl::StatusOr<bool>()>& call_agrees);

// How often Pawl's own kernel runs, of which one takes `own_us`, to take as long as a call.
int OwnRuns(double call_us, double own_us);

}  // namespace pawl
