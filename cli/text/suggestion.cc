#include "cli/text/suggestion.h"

#include "kernels/spelling.h"

namespace pawl {

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string expected = Expected(word, known);
  const size_t meant = expected.rfind("; did you mean ");
  return meant == std::string::npos ? "" : expected.substr(meant);
}

}  // namespace pawl
