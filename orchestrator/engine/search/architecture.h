#pragma once

#include <string>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// "sm_90", as the GPU says or, where that is not known, by the known GPU that a device's label names ("replay of an
// NVIDIA H200, recorded on ..."). Empty: neither tells.
std::string ArchitectureOf(const v1::GpuInfo& gpu, const std::string& device);

}  // namespace pawl
