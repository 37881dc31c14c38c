#include "profiles/goal_sizes.h"

namespace pawl {

std::vector<SizeWeight> GoalSizes(const v1::Bundle& bundle, const v1::Goal& goal) {
  if (!HasSeveralSizes(goal)) return {{goal.size(), 1}};
  std::vector<SizeWeight> sizes;
  for (const v1::Size& size : bundle.sizes()) {
    const auto found = goal.sizes().find(size.name());
    if (found != goal.sizes().end()) sizes.push_back({size.name(), found->second});
  }
  return sizes;
}

}  // namespace pawl
