#pragma once

#include <string>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// A host program that loads a variant's cubin by the CUDA driver API, fills its inputs, launches it as the plan says
// and times it: an example to copy the geometry and the arguments from. The bundle's expressions stand beside the
// figures.
std::string LaunchExample(const v1::Bundle& bundle, const v1::Plan& plan, const std::string& cubin);

}  // namespace pawl
