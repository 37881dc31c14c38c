// Pointers that a loop of the host exchanges: std::swap(a, b), or three assignments.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/draft/read/cpp_statement.h"

namespace pawl {

using Swaps = std::vector<std::pair<std::string, std::string>>;

// swap(a, b), of any namespace.
bool IsSwap(const CppExpression& expression);

// All that a statement makes.
Swaps SwapsIn(const CppStatement& statement);

// What is left of them: twice the same is none.
Swaps NetSwaps(const Swaps& swaps);

}  // namespace pawl
