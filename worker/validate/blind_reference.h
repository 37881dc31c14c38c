#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// Names of inputs that the bundle's reference gives the same outputs for whatever they hold, at the smallest size and
// at the goal's. A candidate need not read those. In the reference's process. A status: the reference does not build or
// run, or the machine's fault.
absl::StatusOr<std::vector<std::string>> BlindInputs(GpuDevice& device, const v1::Bundle& bundle);

// A warning that names them; empty: there are none.
std::string BlindReferenceWarning(const std::vector<std::string>& inputs);

}  // namespace pawl
