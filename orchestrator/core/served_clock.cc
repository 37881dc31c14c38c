#include "orchestrator/core/served_clock.h"

#include <algorithm>

namespace pawl {

void ServedClock::Start(absl::Duration served) {
  served_ = served;
  last_ = monotonic_();
  last_call_ = std::chrono::steady_clock::now();
}

absl::Duration ServedClock::Now() {
  const absl::Duration now = monotonic_();
  const auto call = std::chrono::steady_clock::now();
  const absl::Duration gap = absl::FromChrono(call - last_call_);
  const absl::Duration stopped = gap > longest_gap_ ? gap : absl::ZeroDuration();
  served_ += std::max(now - last_ - stopped, absl::ZeroDuration());
  last_ = now;
  last_call_ = call;
  return served_;
}

}  // namespace pawl
