#pragma once

#include "orchestrator/engine/campaign.h"
#include "orchestrator/engine/chooser.h"
#include "pawl/v1/campaign_service.pb.h"
#include "profiles/diagnosis.h"

namespace pawl {

// All that someone needs who is to propose the next change of a campaign that has a best variant.
v1::Situation SituationOf(const CampaignState& campaign, const Chooser& chooser, const DecisionTree& tree);

}  // namespace pawl
