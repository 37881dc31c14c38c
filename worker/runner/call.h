#pragma once

#include "absl/status/status.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"

namespace pawl {

// One validated call: fresh inputs, poisoned outputs and scratch, dirtied shared memory; afterwards guard bands and
// inputs must be what they were, and repeats must give the same bits. Leaves the first call's outputs in the shared
// region, and those of the repeats where they may differ. A candidate's failure becomes the reply's `failure`, other
// bits in a repeat its `repeat_failure`: wrong outputs are the truer reason where both hold.
absl::Status Call(GpuContext& gpu, const v1::CallRequest& request, v1::RunnerReply* reply);

// Copies the outputs of one call from its arena to this place of the shared region.
absl::Status SetAside(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base, uint64_t offset);
// The same with pieces of large outputs in their place, as InputDraw.pieces has them.
absl::Status SetPiecesAside(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base,
                            uint64_t offset, uint64_t drawn);

}  // namespace pawl
