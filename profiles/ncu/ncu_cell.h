// One cell of ncu's CSV.
#pragma once

#include <optional>
#include <string_view>

namespace pawl {

// ncu's ways to print that there is no value. It must never be read as 0.
bool IsMissing(std::string_view cell);

// "1,048,576.25" and the like; commas only where they separate thousands. No value for anything else, which includes
// numbers of other locales as far as they can be told apart.
std::optional<double> ParseNumber(std::string_view cell);

// Whether `--print-units base` prints this unit. Scaled units (Kbyte, us) are not base: reading one as its base unit
// would be off by a thousand.
bool IsBaseUnit(std::string_view unit);

}  // namespace pawl
