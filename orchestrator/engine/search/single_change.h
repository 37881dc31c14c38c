// What one change makes of a variant, and whether it may be made.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The variant that a change of a variable makes of a kept one. Nothing when a constraint forbids it, the GPU can't
// launch it, the variable or value is unknown, or it changes nothing; *why says which.
std::optional<v1::Variant> Changed(const CampaignState& campaign, const v1::Variant& parent, const v1::Change& change,
                                   std::string* why);

// What a patch makes of a source.
struct PatchedSource {
  std::string source;
  absl::StatusOr<std::string> patched;
};

// A proposed change of the best variant: of a variable, or a source edit. Nothing if it can't be made (*why says why)
// or was tried before (*why is empty). The edit is not applied again where `patched_before` is of the same source.
std::optional<Choice> Proposed(const CampaignState& campaign, const v1::Change& change, std::string* why,
                               const PatchedSource* patched_before = nullptr);

// The number of variables in which two variants differ. A trial is refused unless its variant differs from its parent
// in one.
int Differences(const v1::Variant& a, const v1::Variant& b);

}  // namespace pawl
