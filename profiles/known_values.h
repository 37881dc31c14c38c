// What is known of a launch without a profiler: geometry, the compiler's and the driver's word, the GPU's limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// The names that `known = "..."` in metrics.toml may use.
std::vector<std::string> KnownNames();

// No value when the evidence does not say.
std::optional<double> KnownValue(const std::string& name, const v1::LaunchEvidence& launch, const v1::GpuInfo& gpu);

}  // namespace pawl
