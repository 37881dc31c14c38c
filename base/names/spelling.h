#pragma once

#include <string>
#include <vector>

namespace pawl {

// "; expected start, values" and, where one of them is a slip of the keyboard away from `word`, "; did you mean
// values?".
std::string Expected(const std::string& word, const std::vector<std::string>& known);

// "; did you mean attention?" where one of the known words is a slip of the keyboard away; otherwise empty.
std::string Suggestion(const std::string& word, const std::vector<std::string>& known);

// "; did you mean grid-too-small, tail-effect or low-occupancy?": the three known words nearest to it, for lists that
// are too long to print. Words that begin with it come first.
std::string NearestNames(const std::string& word, const std::vector<std::string>& known);

}  // namespace pawl
