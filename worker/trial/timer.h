#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/trial/gpu_device.h"

namespace pawl {

struct TimingOptions {
  int pairs = 12;
  int measurements = 6;         // of each side in a pair
  int checked_calls = 20;       // about so many timed calls are compared with the reference
  bool candidate_first = true;  // its seat (runner.proto)
};

struct Timing {
  std::optional<v1::Failure> failure;
  v1::CompareReply times;
  double seconds = 0;
};

// Times a validated candidate against its parent at one size, and checks the outputs of timed calls against the
// reference. A status is the machine's fault.
absl::StatusOr<Timing> TimeAgainst(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& candidate,
                                   const BuiltSize& parent, const TimingOptions& options);

}  // namespace pawl
