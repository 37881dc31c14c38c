#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// What running a bundle's start variant says about the bundle.
struct StartVariantRun {
  BuiltVariant built;
  std::optional<v1::Failure> failure;  // its outputs are wrong, or the tolerance accepts wrong outputs
  std::vector<std::string> warnings;   // the tolerance is loose at the goal's size, the reference ignores an input
};

// Builds the start variant and validates it (trial_pipeline.h) at all sizes to validate. A status is the machine's
// fault, or the reference's.
absl::StatusOr<StartVariantRun> RunStartVariant(GpuDevice& device, const v1::Bundle& bundle);

struct SlowestSize {
  std::string size;
  double microseconds = 0;  // of a call, in the bundle's timing mode
  std::string beyond;       // where [work] says more than this GPU can do in a size's time: how; empty: nowhere
};

// Times a validated start variant at every size of the ladder, roughly. An error says why it can't be timed.
absl::StatusOr<SlowestSize> TimeSlowestSize(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built);

}  // namespace pawl
