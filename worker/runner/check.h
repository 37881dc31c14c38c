#pragma once

#include "absl/status/status.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"

namespace pawl {

// The reference process's work: makes the inputs of each seed again, computes what the outputs should be, and compares
// with those the runner left in the shared region. Expected values never leave this process.
absl::Status CheckOutputs(GpuContext& gpu, const v1::CheckRequest& request, v1::RunnerReply* reply);

}  // namespace pawl
