#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"

namespace pawl {

class GpuDevice;

// The distributions that validation draws a bundle's inputs from beside its own fill, and the largest value in float
// inputs that state no range; 0: all of them state one.
using InputMagnitudes = std::map<v1::Distribution, double>;

// Those that make sense for the types of its inputs, each with magnitude 0; none for a bundle without inputs.
InputMagnitudes DistributionsFor(const v1::Bundle& bundle);

// A float input states no range: how large it may be has to be tried.
bool LeavesRangeOpen(const v1::Bundle& bundle);

// How large such inputs may be, by bundle: found with the start variant, and used for every candidate. Thread-safe.
class InputLimits {
 public:
  std::optional<InputMagnitudes> Find(const std::string& bundle_hash);
  void Put(const std::string& bundle_hash, InputMagnitudes magnitudes);

 private:
  absl::Mutex mutex_;
  std::map<std::string, InputMagnitudes> magnitudes_ ABSL_GUARDED_BY(mutex_);
};

struct FoundMagnitudes {
  InputMagnitudes magnitudes;
  std::string note;  // where the start variant is wrong and the reference is not
};

// For each distribution the largest power of two at which, at the first `small` sizes, the reference's outputs are
// finite and the start variant is right, less a margin of 8 where that is not all that the type holds. A distribution
// at which it is right for no magnitude is left out. Nothing where the start variant fails with the bundle's own fill.
absl::StatusOr<std::optional<FoundMagnitudes>> FindMagnitudes(GpuDevice& device, const v1::Bundle& bundle,
                                                              const BuiltVariant& start, size_t small);

v1::InputDraw FreshDraw(v1::Distribution distribution, double magnitude);

// "inputs that are all equal"
std::string DistributionText(v1::Distribution distribution);

}  // namespace pawl
