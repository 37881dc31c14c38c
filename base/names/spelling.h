#pragma once

#include <string>
#include <vector>

namespace pawl {

// "; expected start, values" and, where one of them is a slip of the keyboard away from `word`, "; did you mean
// values?".
std::string Expected(const std::string& word, const std::vector<std::string>& known);

// "; did you mean attention?" where one of the known words is a slip of the keyboard away; otherwise empty.
std::string Suggestion(const std::string& word, const std::vector<std::string>& known);

// For lists that are too long to print: "; did you mean pause or patterns?", the words that begin with it or are a slip
// of the keyboard away, or "; the nearest: compare, record, report" where there are none. At most three.
std::string NearestNames(const std::string& word, const std::vector<std::string>& known);

}  // namespace pawl
