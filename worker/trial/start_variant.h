#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/trial/cuda_device.h"

namespace pawl {

// What running a bundle's start variant says about the bundle.
struct StartVariantRun {
  BuiltVariant built;
  std::optional<v1::Failure> failure;  // it is wrong, or the tolerance accepts what is wrong
  std::vector<std::string> warnings;   // the tolerance is loose at the goal's size
};

// Builds it and takes it through the sizes, 20 times each, with the tolerance's self-test. A status is the machine's
// fault, or the reference's.
absl::StatusOr<StartVariantRun> RunStartVariant(CudaDevice& device, const v1::Bundle& bundle,
                                                const std::vector<v1::Size>& sizes);

}  // namespace pawl
