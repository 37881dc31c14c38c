#pragma once

#include <string>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A size of the objective.
struct SizeWeight {
  std::string size;
  double weight = 1;
};

// The sizes that a goal is over, in the order of the bundle's ladder. Of a goal of one size that one, with weight 1.
std::vector<SizeWeight> GoalSizes(const v1::Bundle& bundle, const v1::Goal& goal);

// The goal has several sizes: pairs say at which they were measured.
inline bool HasSeveralSizes(const v1::Goal& goal) { return goal.sizes_size() > 1; }

}  // namespace pawl
