#pragma once

#include <functional>

#include "absl/time/time.h"

namespace pawl {

// Whether nobody wants any more what a process is waited for; null: it is always wanted. Asked by the thread that
// waits, every kStopLook; the process is then killed, and the wait ends with CANCELLED.
using Stopped = std::function<bool()>;

inline constexpr absl::Duration kStopLook = absl::Milliseconds(100);

}  // namespace pawl
