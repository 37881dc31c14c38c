#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "worker/replay/recording.h"

namespace pawl {

// A campaign with all that the orchestrator knows of it.
struct MeasuredCampaign {
  v1::Campaign campaign;
  v1::Bundle bundle;                      // that it ran
  std::vector<v1::Iteration> iterations;  // as GetIteration has them, by number
  std::vector<v1::TotalGain> totals;      // comparisons with the start, in their order
  double copy_gb_s = 0;                   // 0: it did not measure that
};

// Names of iterations or variants, by why they can't be recorded.
using LeftOut = std::map<std::string, std::vector<std::string>>;

// What a campaign measured, as a recording of `bundle`: the start, and each variant that passed, beside its parent, and
// beside the start and the baseline where it was the best.
// `left_out` takes which others are not in it, and why. FAILED_PRECONDITION: it ran another state of the bundle,
// was a replay, whose times would be copies of copies, or has measured nothing.
// A campaign over several sizes gives a recording of each; `size` says which, empty: the goal's. Where its comparisons
// stopped early, later sizes lack the variant.
absl::StatusOr<Recording> RecordingOf(const MeasuredCampaign& measured, const v1::Bundle& bundle, LeftOut* left_out,
                                      const std::string& size = "");

// Adds the variants that `there` lacks; what it has stays as it is. Answers how many. FAILED_PRECONDITION: they are of
// another bundle, size or GPU. `file` is what errors call it.
absl::StatusOr<int> AddVariants(const Recording& fresh, const std::string& file, Recording* there, LeftOut* left_out);

}  // namespace pawl
