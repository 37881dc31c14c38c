#pragma once

#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Variants that the campaign may try after this trial, likeliest first: the changes that ranked next when it was
// chosen, as they are where it is reverted, and those of its parent made to its own variant where it is kept. None
// where nothing was ranked.
std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned);

}  // namespace pawl
