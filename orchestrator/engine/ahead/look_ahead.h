#pragma once

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// Chooses what would follow the trial that `event` plans, for each outcome that it may have, on copies of the campaign,
// and remembers it in the campaign's memo for Foresee. The event was decided and is not applied yet. Takes as long as
// some choices; of a campaign with many iterations it does nothing.
void LookAhead(const CampaignState& campaign, const v1::Event& event, const Chooser& chooser);

}  // namespace pawl
