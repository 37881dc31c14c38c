#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// An expression of a bundle (base/expression) as C++ over doubles, in parentheses wherever the two languages bind
// differently: `^` and `%` become calls, comparisons give 1.0 or 0.0, and what is known is computed. `name_of` answers
// what stands for a name, perhaps a number; the functions ceil_div, min, max, ... become CeilDiv, Min({...}),
// Max({...}) and those of <cmath>. InvalidArgument: it is no expression.
absl::StatusOr<std::string> HostExpression(const std::string& expression,
                                           const std::function<std::string(const std::string&)>& name_of);

}  // namespace pawl
