// How a host function makes the memory that it hands to kernels.
#pragma once

#include <string>
#include <vector>

#include "cli/draft/read/host_launches.h"

namespace pawl {

struct HostAllocation {
  bool local = false;                // allocated in the function that launches
  bool returned = false;             // and handed out of it
  bool cleared = false;              // to zeros, before the launch
  bool flat = false;                 // the shape is one number of elements
  std::vector<CppExpression> shape;  // in the host's names; empty: not known
  std::vector<CppExpression> bytes;  // where its allocation has no sizeof; one, or none
};

// Of the variable `tensor` in the function of the launch, or in another of its class; without a launch nothing is
// known.
HostAllocation AllocationOf(const SourceModel& model, const HostLaunch* launch, const std::string& tensor);

}  // namespace pawl
