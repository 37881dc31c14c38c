// Which constants of a source are worth varying, and over what values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pawl {

// What a constant's name says that it is.
enum class Tunable { kNone, kBlock, kWarps, kTile, kUnroll, kVector, kStages, kPad, kItems, kFlag };

Tunable TunableOf(const std::string& name, int64_t value, bool is_bool);

// Values to try, the start among them, in order.
std::vector<int64_t> ValuesToTry(Tunable tunable, int64_t start);

// What a larger value gives more or less of, as `affects` has it.
std::vector<std::pair<std::string, std::string>> Effects(Tunable tunable);

// Only how the same work is scheduled inside of a thread changes: no geometry depends on it.
bool IsLocalTo(Tunable tunable);

}  // namespace pawl
