#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A seed nobody can guess.
uint64_t SecretSeed();
// What fresh inputs of the bundle's own distribution are made from.
v1::InputDraw FreshDraw();

// The sizes a variant is validated at, smallest first: the bundle's hidden sizes, drawn by a secret seed, then its
// ladder.
std::vector<v1::Size> SizesToValidate(const v1::Bundle& bundle);
// So many of these are small: the hidden ones and the first of the ladder.
size_t SmallSizes(const v1::Bundle& bundle, size_t sizes);

// Builds the bundle's reference at a plan's size, so that CheckOutputs need not. InvalidArgument: it does not build.
// Thread-safe.
absl::Status BuildReferenceAhead(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                 const Stopped& stopped = nullptr);

// Compares the outputs that lie in shared memory with the reference's for these draws. InvalidArgument is the
// bundle's fault: its reference does not build or run. ResourceExhausted: the GPU's memory does not hold it. Any
// other status is the machine's fault. `own_rms` is the request's. Inputs have the ranges of `plan`.
absl::StatusOr<v1::CheckReply> CheckOutputs(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                            const std::vector<v1::InputDraw>& draws, bool self_test,
                                            const std::vector<double>& own_rms = {});

}  // namespace pawl
