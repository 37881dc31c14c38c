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
#include "worker/validate/checked_call.h"
#include "worker/validate/gpu_device.h"
#include "worker/validate/input_draws.h"
#include "worker/validate/other_inputs.h"

namespace pawl {

struct Validation {
  std::optional<v1::Failure> failure;
  v1::Distribution failed_with = v1::DISTRIBUTION_UNSPECIFIED;    // of the failure: the bundle's own fill, or another
  std::map<std::string, std::vector<v1::OutputError>> errors;     // by size, with the bundle's own fill
  std::map<std::string, std::vector<v1::ResourceUse>> resources;  // of the launches, by size
  double seconds = 0;
};

// At which of the small sizes the other distributions are used.
enum class InputVariety {
  kSpread,      // each at one, drawn at random
  kEverywhere,  // all at all of them, and the inputs of problem.py times a power of two at every other size as well
};

struct ValidationOptions {
  int repeats = 2;         // with the bundle's own fill; 20 for a candidate that is about to be kept
  size_t small = 0;        // so many of the first sizes are small
  InputMagnitudes inputs;  // the other distributions; none: the bundle's own fill only
  InputVariety variety = InputVariety::kSpread;
  bool self_test = false;       // of the bundle: its tolerance, and the ranges that it states
  StartAtSize start = nullptr;  // asked for where a candidate is off with other inputs than the bundle's own fill
  std::function<void(const std::string& size)> report = nullptr;  // before each size
};

// Takes a built variant through its sizes in order, and stops at the first that fails: fresh inputs of the bundle's own
// fill at every size and of other distributions mostly at small ones, poison, guard bands, input check, full comparison
// with the reference in another process, repeats. A draw for which the reference itself is not finite is not compared.
// A status is the machine's fault.
absl::StatusOr<Validation> Validate(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built,
                                    const ValidationOptions& options);

}  // namespace pawl
