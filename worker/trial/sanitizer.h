#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

class CudaDevice;

// Calls each built size once under each of the tools, side by side. A status is the machine's fault, the tool's absence
// included. DeadlineExceeded: a tool other than at small sizes did not end in time; that says nothing about the
// variant.
absl::StatusOr<Sanitizing> Sanitize(CudaDevice& device, const std::vector<const BuiltSize*>& sizes,
                                    SanitizerTools tools);

// What a tool's output means: its first error, without the decoration; nothing when it found none.
std::optional<std::string> FirstSanitizerError(const std::string& output);

}  // namespace pawl
