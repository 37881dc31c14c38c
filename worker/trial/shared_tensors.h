#pragma once

#include <vector>

#include "pawl/v1/plan.pb.h"

namespace pawl {

// Gives plans of the same contract the same list of tensors, so that variants with different scratch can share buffers:
// tensors are matched by name, the first plan keeps its order, and what a plan lacks is added behind. Launches still
// mean the same tensors. Scratch of one name has the strictest alignment of all.
void ShareTensors(const std::vector<v1::Plan*>& plans);

}  // namespace pawl
