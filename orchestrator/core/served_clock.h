#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace pawl {

// Counts the time in which orchestrators of a database have served. It goes on after a restart from what was stored, so
// that an outage counts for nothing; neither does time in which this process was stopped (SIGSTOP, a laptop's lid). It
// goes by a monotonic clock: setting the system's clock changes nothing. Not thread-safe.
class ServedClock {
 public:
  using Monotonic = std::function<absl::Duration()>;
  // A longer gap between two calls was a stop of this process.
  ServedClock(Monotonic monotonic, absl::Duration longest_gap)
      : monotonic_(std::move(monotonic)), longest_gap_(longest_gap) {}

  // Goes on from here.
  void Start(absl::Duration served);
  absl::Duration Now();

 private:
  const Monotonic monotonic_;
  const absl::Duration longest_gap_;
  absl::Duration served_;
  absl::Duration last_;
  std::chrono::steady_clock::time_point last_call_;
};

}  // namespace pawl
