#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

class CudaDevice;

// Starts calling the built sizes, in order, under each of the tools, which run side by side. A status is the machine's
// fault, the tool's absence included.
absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(CudaDevice& device,
                                                              const std::vector<const BuiltSize*>& sizes,
                                                              SanitizerTools tools);

// What a tool's output means: its first error, without the decoration; nothing when it found none.
std::optional<std::string> FirstSanitizerError(const std::string& output);

// How many items of a job pawl-runner says that it called, by what it printed last.
size_t CalledItems(const std::string& output);

}  // namespace pawl
