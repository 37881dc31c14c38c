#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// A condition of a T1 problem, which is Python, as a constraint of a bundle. `names` are the variables it may use. An
// error says what of it a constraint can't express (integer division, chained comparisons, `in`, ...): better none than
// a wrong one.
absl::StatusOr<std::string> ConstraintOf(const std::string& python, const std::set<std::string>& names);

}  // namespace pawl
