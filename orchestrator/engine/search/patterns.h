#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// What a judged iteration taught: a pattern of one, whose median is its gain, rounded to a thousandth. Absent: the
// change served no finding, the GPU is not known, or it was never tried (a replay passed it over).
std::optional<v1::Pattern> LessonOf(const v1::Iteration& iteration, const std::string& bundle,
                                    const std::string& architecture);

// What is to be added when a kept iteration is taken back later: one kept less, at the same gain.
std::optional<v1::Pattern> TakenBack(const v1::Iteration& kept, const std::string& bundle,
                                     const std::string& architecture);

// What many lessons come to, by bundle and over all bundles. Keeps every gain, so that medians are those of the
// lessons in whatever order they came. Pure; one thread at a time.
class PatternTable {
 public:
  // A lesson, or several of the same gain that were counted together.
  void Add(const v1::Pattern& lesson);

  // Of this bundle; empty: over all. In the order of PatternOrder.
  std::vector<v1::Pattern> Of(const std::string& bundle) const;
  // Over all bundles, then of each.
  std::vector<v1::Pattern> List() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, int, int>;  // bundle, rule, architecture, effect
  struct Lessons {
    v1::Pattern sum;              // its median is that of the gains while `fresh`
    std::map<double, int> gains;  // of those that were timed, with how often
    bool fresh = false;
  };
  static Key KeyOf(const v1::Pattern& pattern, const std::string& bundle);
  static const v1::Pattern& PatternOf(Lessons* lessons);

  mutable std::map<Key, Lessons> lessons_;  // mutable: medians are found when they are asked for
};

// One order for every list: by bundle, rule, architecture, resource, direction.
bool PatternOrder(const v1::Pattern& a, const v1::Pattern& b);
// The most tried first; equal ones as in PatternOrder.
void SortByTried(std::vector<v1::Pattern>* patterns);

// Those of the same bundle, rule, effect and architecture as one: counts are added, and of the medians it is the mean
// in log, weighted by how many were timed. In the order of PatternOrder.
std::vector<v1::Pattern> Merged(const std::vector<v1::Pattern>& patterns);
// The same over all bundles.
std::vector<v1::Pattern> OverAll(const std::vector<v1::Pattern>& patterns);

// Without those over all bundles where the list has those of the bundles they are made of: what OverAll may add up
// without counting anything twice.
std::vector<v1::Pattern> ByBundle(const std::vector<v1::Pattern>& patterns);
// What is known without one bundle. Those over all bundles are left out too: nobody can tell what of them is its.
std::vector<v1::Pattern> WithoutBundle(const std::vector<v1::Pattern>& patterns, const std::string& bundle);

}  // namespace pawl
