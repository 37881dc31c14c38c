#pragma once

#include <string>

#include "absl/status/status.h"

namespace pawl {

// Calls each item of a v1::Job file once, every tensor in an allocation of its exact size, without guard bands or
// poison: those would blind compute-sanitizer. What ncu and compute-sanitizer run.
absl::Status RunJob(const std::string& file);

}  // namespace pawl
