#include "base/names/spelling.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {

namespace {

constexpr size_t kMaxWord = 64;
constexpr size_t kNearest = 3;  // names that are listed
constexpr size_t kPrefix = 2;   // letters that begin a name

// Levenshtein's distance, with two neighbours swapped counting as one edit.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Of a slip of the keyboard.
size_t MostEdits(const std::string& word) { return std::max<size_t>(1, word.size() / 3); }

// The known word that is a slip of the keyboard away; empty: none.
std::string Nearest(const std::string& word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kMaxWord) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  size_t best = MostEdits(word) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    if (candidate.size() > kMaxWord) continue;
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

std::string NearestNames(const std::string& word, const std::vector<std::string>& known) {
  const std::string lower = absl::AsciiStrToLower(word.substr(0, kMaxWord));
  std::vector<std::pair<size_t, std::string>> by_distance;
  for (const std::string& candidate : known) {
    const std::string other = absl::AsciiStrToLower(candidate.substr(0, kMaxWord));
    const bool begun = lower.size() >= kPrefix && absl::StartsWith(other, lower);
    by_distance.emplace_back(begun ? 0 : EditDistance(lower, other), candidate);
  }
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t slip = MostEdits(word);
  const bool meant = !by_distance.empty() && by_distance[0].first <= slip;
  std::vector<std::string> names;
  for (const auto& [distance, name] : by_distance) {
    if (names.size() < kNearest && (!meant || distance <= slip)) names.push_back(name);
  }
  if (names.empty()) return "";
  if (!meant) return absl::StrCat("; the nearest: ", absl::StrJoin(names, ", "));
  return absl::StrCat("; did you mean ", absl::StrJoin(names, " or "), "?");
}

std::string Expected(const std::string& word, const std::vector<std::string>& known) {
  return absl::StrCat("; expected ", known.empty() ? "none" : absl::StrJoin(known, ", "), Suggestion(word, known));
}

}  // namespace pawl
