#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "orchestrator/engine/search/point.h"

namespace pawl {

// Which variables do nothing, and where: changes of one variable that left machine code and launches as they were, and
// changes that did not. That a change does nothing at one variant proves nothing of another: there it is only likely.
class Inertness {
 public:
  // Two variants that differ in one variable and were both built; `same`: to the same code.
  void Add(size_t variable, const Point& a, const Point& b, bool same);

  bool empty() const { return same_.empty(); }
  // A change of it did nothing somewhere.
  bool Knows(size_t variable) const { return variable < same_.size() && same_[variable].count > 0; }

  // Probability that a variant keeps its code when the variable gets another place. Whether it does is taken to depend
  // on the place of one variable, which is not known: one whose place was among those with which the change did nothing
  // is no reason for doubt. Changes that did something say which variable it may be.
  double Same(size_t variable, const Point& point, uint16_t place) const;

 private:
  struct Seen {
    int count = 0;
    std::vector<std::set<uint16_t>> places;  // by variable: with which the change did nothing
  };
  struct Different {
    size_t variable = 0;
    Point a, b;
  };

  // The variables of which one of the two variants has another place than those.
  static std::vector<size_t> Unseen(const Seen& seen, const Point& a, const Point& b);

  std::vector<Seen> same_;  // by variable
  std::vector<Different> different_;
};

}  // namespace pawl
