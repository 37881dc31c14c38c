#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "kernels/read/implementation.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"
#include "worker/trial/cuda_trial_device.h"

namespace pawl {

// A device for a test program, opened once; null where there is no GPU.
CudaTrialDevice* SharedDevice();

// Takes a variant through a trial without a parent, as iteration 0 of a campaign goes: everything that must be passed
// before it could be kept.
absl::StatusOr<v1::TrialResult> RunAlone(const v1::Bundle& bundle, const v1::Variant& variant);
// As a campaign plans it.
absl::StatusOr<v1::TrialResult> RunPlan(const v1::Bundle& bundle, const v1::TrialPlanned& planned,
                                        const CampaignState& campaign);
// compute-sanitizer over kept variants, as iterations 0, 1, ...
absl::StatusOr<v1::TrialResult> RunSanitizer(const v1::Bundle& bundle, const std::vector<v1::Variant>& kept);
// Against a parent.
absl::StatusOr<v1::TrialResult> RunAgainst(const v1::Bundle& bundle, const v1::Variant& variant,
                                           const v1::Variant& parent);

// Against a parent with another implementation (kernels/read/implementation.h); an empty text: the bundle's own.
absl::StatusOr<v1::TrialResult> RunAgainst(const v1::Bundle& bundle, const ImplementationState& candidate,
                                           const ImplementationState& parent);

// Skips the calling test.
#define PAWL_NEEDS_GPU() \
  if (::pawl::SharedDevice() == nullptr) GTEST_SKIP() << "needs a GPU, its driver, and NVRTC or nvcc"

}  // namespace pawl
