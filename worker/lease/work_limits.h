#pragma once

#include <chrono>
#include <optional>

#include "absl/time/time.h"

namespace pawl {

// When a worker ends by itself, as if it were told to drain. Absent: never for this reason.
struct WorkLimits {
  std::optional<std::chrono::duration<double>> idle;  // without a trial, for whatever reason
  std::optional<int> trials;                          // that it leases in all
  std::optional<absl::Time> until;                    // by the system's clock

  bool any() const { return idle || trials || until; }
};

}  // namespace pawl
