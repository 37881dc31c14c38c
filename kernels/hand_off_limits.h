// How much of what `pawl best --output` writes is sent to a worker, which builds and runs it: it goes into the log of
// the campaign.
#pragma once

#include <cstddef>

namespace pawl {

inline constexpr size_t kMaxHandOffFiles = 1024;
inline constexpr size_t kMaxHandOffBytes = size_t{3} << 20;  // of all files together

}  // namespace pawl
