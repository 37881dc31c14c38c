#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace pawl {

// A moment by the monotonic clock, for deadlines and for how long something took: who sets the machine's clock neither
// ends a wait nor prolongs it. It is no date, and no absl::Time can be taken for it.
class SteadyTime {
 public:
  constexpr SteadyTime() = default;
  static constexpr SteadyTime InfinitePast() { return SteadyTime(-absl::InfiniteDuration()); }
  static constexpr SteadyTime InfiniteFuture() { return SteadyTime(absl::InfiniteDuration()); }
  static SteadyTime Now() { return SteadyTime(absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch())); }

  friend SteadyTime operator+(SteadyTime time, absl::Duration by) { return SteadyTime(time.since_ + by); }
  friend absl::Duration operator-(SteadyTime end, SteadyTime begin) { return end.since_ - begin.since_; }
  friend constexpr bool operator==(SteadyTime a, SteadyTime b) { return a.since_ == b.since_; }
  friend constexpr bool operator<(SteadyTime a, SteadyTime b) { return a.since_ < b.since_; }
  friend constexpr bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend constexpr bool operator<=(SteadyTime a, SteadyTime b) { return !(b < a); }
  friend constexpr bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  explicit constexpr SteadyTime(absl::Duration since) : since_(since) {}

  absl::Duration since_;  // some moment
};

inline SteadyTime SteadyNow() { return SteadyTime::Now(); }

}  // namespace pawl
