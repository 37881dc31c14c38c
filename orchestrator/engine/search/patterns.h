#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// A judged iteration as a pattern of one trial, whose median gain is its own in steps of 0.001 in log. Absent: the
// change served no finding, the GPU is unknown, or the change was never tried (a replay passed it over).
std::optional<v1::Pattern> LessonOf(const v1::Iteration& iteration, const std::string& bundle,
                                    const std::string& architecture);

// To be added if a kept iteration is reverted later: one kept less.
std::optional<v1::Pattern> TakenBack(const v1::Iteration& kept, const std::string& bundle,
                                     const std::string& architecture);

// The patterns of many lessons, by bundle and over all bundles. Keeps every gain, so that the medians do not depend on
// the order of the lessons. Pure; one thread at a time.
class PatternTable {
 public:
  // A lesson, or several with the same gain that were counted together.
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

  mutable std::map<Key, Lessons> lessons_;  // mutable: medians are computed on demand
};

// The order of every list: by bundle, rule, architecture, resource, direction.
bool PatternOrder(const v1::Pattern& a, const v1::Pattern& b);
// The most tried first; equal ones as in PatternOrder.
void SortByTried(std::vector<v1::Pattern>* patterns);

// Merges those with the same bundle, rule, effect and architecture: counts are added, and the merged median is the
// geometric mean of the medians, weighted by how many were timed. In the order of PatternOrder.
std::vector<v1::Pattern> Merged(const std::vector<v1::Pattern>& patterns);
// The same over all bundles.
std::vector<v1::Pattern> OverAll(const std::vector<v1::Pattern>& patterns);

// Leaves out patterns over all bundles that the list also has by bundle, so that OverAll counts nothing twice.
std::vector<v1::Pattern> ByBundle(const std::vector<v1::Pattern>& patterns);
// The patterns of other bundles. Those over all bundles are left out too: they may include this bundle's trials.
std::vector<v1::Pattern> WithoutBundle(const std::vector<v1::Pattern>& patterns, const std::string& bundle);

// "sm_90", from the GPU's compute capability or, if a recording lacks that, from the known GPU of its name. Empty:
// unknown.
std::string SmArchitecture(const v1::GpuInfo& gpu);

}  // namespace pawl
