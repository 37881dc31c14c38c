#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace pawl {

// Waits between tries: each twice as long as the last up to a limit, less up to a half at random, so that many workers
// do not come back in step.
class Backoff {
 public:
  using Duration = std::chrono::duration<double>;
  Backoff(Duration shortest, Duration longest) : shortest_(shortest), longest_(longest), next_(shortest) {}

  Duration Next() {
    const Duration wait = next_ * std::uniform_real_distribution<double>(0.5, 1)(random_);
    next_ = std::min(2 * next_, longest_);
    return wait;
  }
  void Reset() { next_ = shortest_; }

 private:
  const Duration shortest_, longest_;
  Duration next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace pawl
