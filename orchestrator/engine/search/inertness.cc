#include "orchestrator/engine/search/inertness.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr double kDoubt = 0.1;          // what speaks against any such belief, in changes
constexpr double kOtherReason = 0.05;   // that a change which did something did it for a variable that is not suspected
constexpr double kUnseenMatters = 0.5;  // that an unseen place of the deciding variable makes the change do something

}  // namespace

void Inertness::Add(size_t variable, const Point& a, const Point& b, bool same) {
  if (!same) {
    different_.push_back({variable, a, b});
    return;
  }
  if (same_.size() <= variable) same_.resize(variable + 1);
  Seen& seen = same_[variable];
  ++seen.count;
  seen.places.resize(std::max(seen.places.size(), a.size()));
  for (size_t v = 0; v < a.size(); ++v) {
    seen.places[v].insert(a[v]);
    seen.places[v].insert(b[v]);
  }
}

std::vector<size_t> Inertness::Unseen(const Seen& seen, const Point& a, const Point& b) {
  std::vector<size_t> unseen;
  for (size_t v = 0; v < seen.places.size(); ++v) {
    if (!seen.places[v].contains(a[v]) || !seen.places[v].contains(b[v])) unseen.push_back(v);
  }
  return unseen;
}

double Inertness::Same(size_t variable, const Point& point, uint16_t place) const {
  if (!Knows(variable)) return 0;
  const Seen& seen = same_[variable];
  Point other = point;
  other[variable] = place;
  const std::vector<size_t> unseen = Unseen(seen, point, other);
  std::vector<double> decides(point.size(), 1), matters(point.size(), kUnseenMatters);
  int unexplained = 0;
  for (const Different& different : different_) {
    if (different.variable != variable) continue;
    const std::vector<size_t> suspects = Unseen(seen, different.a, different.b);
    unexplained += suspects.empty();
    if (suspects.empty()) continue;
    std::vector<bool> suspected(point.size());
    for (const size_t v : suspects) {
      suspected[v] = true;
      // The changed variable has two places; of any other, both variants have the same.
      const bool alike = std::minmax(different.a[v], different.b[v]) == std::minmax(point[v], other[v]);
      if (alike) matters[v] = 1;
    }
    for (size_t v = 0; v < point.size(); ++v) decides[v] *= suspected[v] ? 1 : kOtherReason;
  }
  double all = 0;
  for (const double weight : decides) all += weight;
  double same = seen.count / (seen.count + kDoubt + unexplained);
  for (const size_t v : unseen) same *= 1 - matters[v] * decides[v] / all;
  return same;
}

}  // namespace pawl
