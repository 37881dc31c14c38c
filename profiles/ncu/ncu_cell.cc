#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include "profiles/ncu/csv_rows.h"

namespace pawl {

bool IsMissing(std::string_view cell) {
  const auto is = [&](std::string_view token) {
    return std::equal(cell.begin(), cell.end(), token.begin(), token.end(),
                      [](unsigned char a, char b) { return std::tolower(a) == b; });
  };
  return is("") || is("nan") || is("-nan") || is("n/a") || is("no data") || is("inf") || is("-inf");
}

std::optional<double> ParseNumber(std::string_view cell) {
  std::array<char, 64> digits;
  if (cell.empty() || cell.size() > digits.size()) return std::nullopt;
  size_t length = 0;
  bool whole = true;                    // still before the decimal point
  size_t since_comma = 0, leading = 0;  // digits since the last comma; before the first
  bool grouped = false;
  for (char c : cell) {
    if (c == ',') {
      const bool first_group = !grouped && leading >= 1 && leading <= 3;
      if (!whole || !(first_group || (grouped && since_comma == 3))) return std::nullopt;
      grouped = true;
      since_comma = 0;
      continue;
    }
    if (c >= '0' && c <= '9') {
      if (whole) ++(grouped ? since_comma : leading);
    } else {
      if (whole && grouped && since_comma != 3) return std::nullopt;
      whole = false;
      if (c == '-' && length == 0) whole = true;
    }
    digits[length++] = c;
  }
  if (whole && grouped && since_comma != 3) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + length, value);
  if (error != std::errc() || end != digits.data() + length || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool IsBaseUnit(std::string_view unit) {
  // Seen in ncu 2025.3 or printed by earlier versions for the same columns.
  static const auto& kUnits = *new std::set<std::string_view>{"",
                                                              "%",
                                                              "%/byte",
                                                              "%/register",
                                                              "SM",
                                                              "block",
                                                              "branches",
                                                              "byte",
                                                              "byte/block",
                                                              "byte/cycle",
                                                              "byte/s",
                                                              "byte/sector",
                                                              "byte/second",
                                                              "cluster",
                                                              "cycle",
                                                              "cycle/second",
                                                              "hz",
                                                              "inst",
                                                              "inst/cycle",
                                                              "inst/warp",
                                                              "ns",
                                                              "nsecond",
                                                              "pass",
                                                              "register",
                                                              "register/thread",
                                                              "request",
                                                              "request/cycle",
                                                              "sample",
                                                              "sector",
                                                              "sector/cycle",
                                                              "sector/request",
                                                              "sector/s",
                                                              "sector/second",
                                                              "sectors",
                                                              "thread",
                                                              "thread/inst",
                                                              "threads",
                                                              "warp",
                                                              "warp/cycle",
                                                              "wavefront"};
  return kUnits.contains(unit);
}

}  // namespace pawl
