#pragma once

#include <string>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// "sm_90", from the GPU's compute capability or, if a recording lacks that, from the known GPU of its name. Empty:
// unknown.
std::string SmArchitecture(const v1::GpuInfo& gpu);

}  // namespace pawl
