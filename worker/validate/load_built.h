#pragma once

#include "absl/status/statusor.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// Gives a process everything that calls of a built size need, unless it has it: the code, that of the setup launches,
// and the files of its inputs. The reply is that of the code, or the first that failed. As KernelProcess::Load.
absl::StatusOr<v1::RunnerReply> LoadBuilt(KernelProcess& process, const BuiltSize& built);

}  // namespace pawl
