#pragma once

#include <string>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// "sm_90", from the GPU's compute capability or, if that is unknown, from the known GPU that the device's label names
// ("replay of an NVIDIA H200, recorded on ..."). Empty: unknown.
std::string ArchitectureOf(const v1::GpuInfo& gpu, const std::string& device);

}  // namespace pawl
