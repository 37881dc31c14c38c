#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/checked_call.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// What outputs say about a candidate where the inputs are not of the bundle's own fill: arithmetic may lose so much
// with them that nobody is right.

// The start variant at one of the sizes; null: it does not build there. Empty: the variant is the start itself.
using StartAtSize = std::function<absl::StatusOr<const BuiltSize*>(const v1::Plan& at)>;

// With other inputs than the bundle's own, whose terms may cancel, the relative limit is no less than what rounding
// alone may do.
BuiltSize ForOtherInputs(const BuiltSize& at);

// Not of another distribution.
bool IsOfOwnFill(const v1::InputDraw& draw);

// Few distinct values: where the right result lies between two of the output's type, all elements may round the other
// way at once, and the next draw lies elsewhere.
bool HasFewValues(v1::Distribution distribution);

// The start variant with the inputs that a candidate was wrong with.
class StartVariantCheck {
 public:
  StartVariantCheck(GpuDevice& device, const v1::Bundle& bundle, const StartAtSize& start)
      : device_(device), bundle_(bundle), start_(start) {}

  // Whether it is right with them; false where there is none to ask.
  absl::StatusOr<bool> IsRight(const v1::Plan& at, const v1::InputDraw& draw, const CheckedCallOptions& options) const;
  // Whether they bring it close to the limits too, so that they say little about a candidate that is off by not much
  // more. `candidate` was compared by the limits of `at`.
  absl::StatusOr<bool> IsStrained(const v1::Plan& at, const v1::InputDraw& draw, const CheckedCallOptions& options,
                                  const CheckedCall& candidate) const;

 private:
  // None: there is none to ask.
  absl::StatusOr<std::optional<CheckedCall>> Call(const v1::Plan& at, const v1::InputDraw& draw,
                                                  const CheckedCallOptions& options, v1::Plan* plan) const;

  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const StartAtSize& start_;
};

// The outputs of calls that looked like timed ones and had other inputs: those of `draws` that state a distribution. A
// draw with which the start variant is wrong or strained, or the reference is not finite, says nothing; one of few
// values that is off by little says something where another one is off as well. `check` is of all draws, some with the
// bundle's own fill.
absl::StatusOr<std::optional<v1::Failure>> JudgeOtherInputs(GpuDevice& device, const v1::Bundle& bundle,
                                                            const BuiltSize& candidate,
                                                            const std::vector<v1::InputDraw>& draws,
                                                            const v1::CheckReply& check, const StartAtSize& start);

}  // namespace pawl
