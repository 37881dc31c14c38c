// What one change makes of a variant, and whether it may be made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/read/implementation.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Why a constraint or the GPU's limits forbid a variant of the source; empty: they allow it.
std::string WhyForbidden(const CampaignState& campaign, const v1::Variant& variant, int source);

// The variant that a change of a variable makes of a kept one, an iteration's. Nothing when a constraint forbids it,
// the GPU can't launch it, the variable or value is unknown, or it changes nothing; *why says which.
std::optional<v1::Variant> Changed(const CampaignState& campaign, const v1::Iteration& parent, const v1::Change& change,
                                   std::string* why);

// What a patch may have been made against: the best variant, then earlier kept ones, the newest first; or a contract
// alone.
struct PatchBases {
  std::shared_ptr<const v1::Bundle> bundle;
  std::string own_source;
  std::vector<std::pair<int, ImplementationState>> states;  // by iteration; none: nothing was kept yet
};
PatchBases BasesOf(const CampaignState& campaign);

// What an edit makes of the best variant: its patch was made against that one, or against an earlier one where the best
// still has the lines that it touches.
PatchedBest Patched(const PatchBases& bases, const std::string& patch);

// Why a proposed change is not tried.
struct ProposalRefusal {
  std::string why;        // it can't be made
  int tried_before = -1;  // the iteration, planned or judged, that is the same but for comments and blanks
};

// A proposed change of the best variant: of a variable, or an edit; of a contract alone, an edit that adds the device
// code, whose choice has the parent PatchedBest::kContract. Nothing if it is refused. The edit is not applied
// again where `patched_before` is of the same best.
std::optional<Choice> Proposed(const CampaignState& campaign, const v1::Change& change, ProposalRefusal* refusal,
                               const PatchedBest* patched_before = nullptr);

// The number of variables in which two variants differ. A trial is refused unless its variant differs from its parent
// in one.
int Differences(const v1::Variant& a, const v1::Variant& b);

}  // namespace pawl
