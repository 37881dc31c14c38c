#include "kernels/problem.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace pawl {

std::string FormatProblem(const Problem& problem) {
  if (problem.line == 0) return absl::StrCat(problem.file, ": ", problem.message);
  return absl::StrCat(problem.file, ":", problem.line, ": ", problem.message);
}

std::vector<Problem> Problems::Sorted() const {
  std::vector<Problem> sorted = list_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  const auto same = [](const Problem& a, const Problem& b) {
    return a.file == b.file && a.line == b.line && a.message == b.message;
  };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
  return sorted;
}

}  // namespace pawl
