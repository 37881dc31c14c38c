#pragma once

#include <string>

#include "cli/compare/sides.h"
#include "worker/trial/side_by_side.h"

namespace pawl {

// Of `pawl compare`; no other command has these. Faster is 0.
inline constexpr int kSlower = 10;
inline constexpr int kSame = 11;
inline constexpr int kUnclear = 12;
inline constexpr int kWrong = 13;  // a side failed a check

int ExitCodeOf(const SideBySide& compared);

// "faster", "slower", "same", "unclear" or "wrong".
std::string VerdictWordOf(const SideBySide& compared);

// For people: both sides, a row for each size, counters side by side, and the verdict in the last line.
std::string ComparisonText(const NamedSides& sides, const SideBySide& compared, int width, bool color);

// For programs: one object on one line.
std::string ComparisonJson(const NamedSides& sides, const SideBySide& compared);

}  // namespace pawl
