#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// A condition of a T1 problem, which is Python, as a constraint of a bundle. `names` are the parameters it may use,
// with the variables they are in the bundle. An error says what of it a constraint can't express (integer division,
// chained comparisons, `in`, ...): better none than a wrong one.
absl::StatusOr<std::string> ConstraintOf(const std::string& python, const std::map<std::string, std::string>& names);

}  // namespace pawl
