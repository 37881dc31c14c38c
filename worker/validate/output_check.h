#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "profiles/goal_sizes.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A seed nobody can guess.
uint64_t SecretSeed();
// What fresh inputs of the bundle's own distribution are made from.
v1::InputDraw FreshDraw();

// The sizes that a variant is validated at, smallest first: hidden sizes of the bundle, drawn by a secret seed, then
// its ladder.
struct SizesToValidate {
  std::vector<v1::Size> all;
  size_t small = 0;  // so many of the first are small: the hidden ones and the first of the ladder
};
SizesToValidate AllSizes(const v1::Bundle& bundle);
// What a variant must pass before it is timed at some sizes: the hidden ones (half of them, where each must be compiled
// by itself), the smallest of the ladder, and those. It meets the rest when it is about to be kept.
SizesToValidate FirstSizes(const v1::Bundle& bundle, const v1::Variant& variant, const std::vector<SizeWeight>& timed);

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
