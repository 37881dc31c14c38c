#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"

namespace pawl {

class CudaDevice;

struct Sanitizing {
  std::optional<v1::Failure> failure;  // of the first tool, in the order memcheck, racecheck, initcheck, synccheck
  double seconds = 0;
};

// Calls each built size once under each tool of compute-sanitizer, the tools side by side. Small sizes only: racecheck
// is slow. A status is the machine's fault, the tool's absence included.
absl::StatusOr<Sanitizing> Sanitize(const CudaDevice& device, const std::vector<const BuiltSize*>& sizes);

// What a tool's output means: its first error, without the decoration; nothing when it found none.
std::optional<std::string> FirstSanitizerError(const std::string& output);

}  // namespace pawl
