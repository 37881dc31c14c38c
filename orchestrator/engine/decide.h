#pragma once

#include <optional>

#include "absl/time/time.h"
#include "orchestrator/engine/campaign.h"
#include "orchestrator/engine/chooser.h"

namespace pawl {

// What happens next in a campaign on its own account: a trial is planned, or it ends. Nothing while it is paused, has
// ended, or has an iteration under way. Pure; the event has no sequence, name or time yet.
std::optional<v1::Event> Decide(const CampaignState& campaign, const Chooser& chooser, absl::Time now);

}  // namespace pawl
