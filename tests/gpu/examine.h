#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/cuda_device.h"
#include "worker/timer.h"

namespace pawl {

// Everything a variant goes through before it could be kept: limits, build, ladder and hidden sizes with 20 repeats,
// the tolerance's self-test, timing against itself with checked outputs, the roofline, compute-sanitizer.
struct Examination {
  std::optional<v1::Failure> failure;
  Timing timing;
};
absl::StatusOr<Examination> Examine(CudaDevice& device, const v1::Bundle& bundle, const v1::Variant& variant);

// A device for a test program, opened once; skips the calling test where there is no GPU.
CudaDevice* SharedDevice();

#define PAWL_NEEDS_GPU() \
  if (::pawl::SharedDevice() == nullptr) GTEST_SKIP() << "needs a GPU, its driver, and NVRTC or nvcc"

}  // namespace pawl
