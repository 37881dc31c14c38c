#include "cli/handoff/unified_diff.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr size_t kContext = 3;
constexpr int kMaxSteps = 2000;  // changed lines that are searched for a shortest script; beyond, all of them change

using DiffLines = std::vector<std::string_view>;  // with their ends

DiffLines DiffLinesOf(std::string_view text) {
  DiffLines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// One line of the script: ' ', '-' or '+'.
struct DiffStep {
  char kind;
  std::string_view line;
};

// Myers' greedy algorithm, with the furthest points of every step kept.
std::vector<DiffStep> ScriptBetween(const DiffLines& a, const DiffLines& b) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
  const int most = std::min(n + m, kMaxSteps);
  std::vector<std::vector<int>> trace;
  std::vector<int> furthest(2 * most + 3, 0);
  const auto at = [&](std::vector<int>& points, int k) -> int& { return points[k + most + 1]; };
  bool found = false;
  for (int d = 0; d <= most && !found; ++d) {
    trace.push_back(furthest);
    for (int k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
      int x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && a[x] == b[x - k]) ++x;
      at(furthest, k) = x;
      if (x >= n && x - k >= m) {
        found = true;
        break;
      }
    }
  }
  std::vector<DiffStep> steps;
  if (!found) {
    for (const std::string_view line : a) steps.push_back({'-', line});
    for (const std::string_view line : b) steps.push_back({'+', line});
    return steps;
  }
  int x = n, y = m;
  for (int d = static_cast<int>(trace.size()) - 1; d >= 0; --d) {
    std::vector<int>& points = trace[d];
    const int k = x - y;
    const bool down = k == -d || (k != d && at(points, k - 1) < at(points, k + 1));
    const int before_x = d == 0 ? 0 : down ? at(points, k + 1) : at(points, k - 1);
    const int before_y = d == 0 ? 0 : before_x - (down ? k + 1 : k - 1);
    while (x > before_x && y > before_y) {
      steps.push_back({' ', a[--x]});
      --y;
    }
    if (d == 0) break;
    if (down) {
      steps.push_back({'+', b[--y]});
    } else {
      steps.push_back({'-', a[--x]});
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

void AppendStep(const DiffStep& step, std::string* text) {
  text->push_back(step.kind);
  text->append(step.line);
  if (step.line.empty() || step.line.back() != '\n') absl::StrAppend(text, "\n\\ No newline at end of file\n");
}

}  // namespace

std::string UnifiedDiff(const std::string& path, const std::string& before, const std::string& after) {
  if (before == after) return "";
  const DiffLines a = DiffLinesOf(before), b = DiffLinesOf(after);
  const std::vector<DiffStep> steps = ScriptBetween(a, b);
  std::string text = absl::StrCat("--- a/", path, "\n+++ b/", path, "\n");
  size_t a_line = 0, b_line = 0;  // before steps[i]
  for (size_t i = 0; i < steps.size();) {
    if (steps[i].kind == ' ') {
      ++i, ++a_line, ++b_line;
      continue;
    }
    // From a few lines before the change to a few lines behind the last one that is near it.
    const size_t begin = i - std::min({i, kContext, a_line, b_line});
    size_t last = i;
    for (size_t j = i; j < steps.size() && j <= last + 2 * kContext; ++j) {
      if (steps[j].kind != ' ') last = j;
    }
    const size_t end = std::min(last + kContext + 1, steps.size());
    const size_t context = i - begin;
    const size_t a_begin = a_line - context, b_begin = b_line - context;
    size_t a_count = 0, b_count = 0;
    std::string hunk;
    for (size_t j = begin; j < end; ++j) {
      if (steps[j].kind != '+') ++a_count;
      if (steps[j].kind != '-') ++b_count;
      AppendStep(steps[j], &hunk);
    }
    absl::StrAppend(&text, "@@ -", a_count == 0 ? a_begin : a_begin + 1, ",", a_count, " +",
                    b_count == 0 ? b_begin : b_begin + 1, ",", b_count, " @@\n", hunk);
    a_line = a_begin + a_count;
    b_line = b_begin + b_count;
    i = end;
  }
  return text;
}

}  // namespace pawl
