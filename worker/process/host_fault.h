#pragma once

#include <string>

#include "absl/status/status.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// What a runner said was wrong with the machine, as a status. Remembers whether the GPU is to blame: an uncorrectable
// ECC error, a GPU that fell off the bus. A candidate's faults never get here.
absl::Status RunnerFault(const std::string& host_error);

bool BlamesGpu(const absl::Status& status);

// What the orchestrator is told.
v1::HostFault HostFaultOf(const absl::Status& status);

}  // namespace pawl
