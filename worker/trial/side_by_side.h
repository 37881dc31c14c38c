#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/trial/trial_device.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A variant of a bundle. Two that are compared have bundles of the same contract (kernels/contract.h).
struct ComparedSide {
  std::shared_ptr<const v1::Bundle> bundle;
  v1::Variant variant;
};

// Both sides at one size.
struct ComparedSize {
  std::string size;
  v1::Comparison comparison;             // of the candidate with the base
  double base_us = 0, candidate_us = 0;  // a call, in the bundle's timing mode
  v1::Evidence base, candidate;
};

// One verdict without a campaign.
struct SideBySide {
  std::string device;  // a GPU's name, or what a replay says in its place
  // The first check that a side failed; nothing was timed after it. An unsteady GPU is none: its comparison is unclear.
  std::optional<v1::Failure> base_failure, candidate_failure;
  std::vector<ComparedSize> sizes;
  std::vector<std::string> notes;  // what was left out, each once

  void AddNote(const std::string& note);
};

// Slower where any size is slower, else unclear where any is, else faster where any is, else the same.
v1::ComparisonResult Overall(const SideBySide& compared);

// The comparison of two sides with the same machine code and launches, which are not timed.
v1::Comparison SameCode();

// Validates both, and times the candidate against the base at each of the sizes by the steps that a campaign keeps a
// change by (trial_pipeline.h). A status is the machine's fault, or CANCELLED.
absl::StatusOr<SideBySide> CompareSides(GpuDevice& device, const ComparedSide& base, const ComparedSide& candidate,
                                        const std::vector<std::string>& sizes, TrialObserver& observer);

}  // namespace pawl
