#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/trial/gpu_device.h"

namespace pawl {

struct Validation {
  std::optional<v1::Failure> failure;
  std::map<std::string, std::vector<v1::OutputError>> errors;     // by size
  std::map<std::string, std::vector<v1::ResourceUse>> resources;  // of the launches, by size
  double seconds = 0;
};

struct ValidationOptions {
  int repeats = 2;                                                // 20 for a candidate that is about to be kept
  bool self_test = false;                                         // of the bundle's tolerance
  std::function<void(const std::string& size)> report = nullptr;  // before each size
};

// Takes a built variant through its sizes in order, and stops at the first that fails: fresh inputs, poison, guard
// bands, input check, full comparison with the reference in another process, repeats. A status is the machine's fault.
absl::StatusOr<Validation> Validate(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built,
                                    const ValidationOptions& options);

// Whether an output is within both limits. A NaN is not.
bool WithinTolerance(const v1::OutputError& error, const v1::Tolerance& tolerance);

// What outputs that are off are called, in one line with the first wrong element; nothing when they are within the
// tolerance.
std::optional<v1::Failure> JudgeErrors(const v1::Plan& plan,
                                       const google::protobuf::RepeatedPtrField<v1::OutputError>& errors);

}  // namespace pawl
