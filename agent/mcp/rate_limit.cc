#include "agent/mcp/rate_limit.h"

#include <algorithm>

namespace pawl {

RateLimit::RateLimit(double per_second, double burst, Clock clock)
    : per_second_(per_second), burst_(burst), clock_(std::move(clock)), left_(burst), last_(clock_()) {}

bool RateLimit::Take() {
  absl::MutexLock lock(&mutex_);
  const auto now = clock_();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  left_ = std::min(burst_, left_ + std::max(0.0, seconds) * per_second_);
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

}  // namespace pawl
