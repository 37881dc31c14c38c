#pragma once

#include <vector>

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign_service.pb.h"
#include "profiles/diagnosis.h"

namespace pawl {

// Everything needed to propose the next change of a campaign that has a best variant, or awaits its start.
v1::Situation SituationOf(const CampaignState& campaign, const Chooser& chooser, const DecisionTree& tree);

// The untried changes of a campaign that has a best variant, the highest score first.
std::vector<v1::RankedChange> UntriedChanges(const CampaignState& campaign, const Chooser& chooser);

}  // namespace pawl
