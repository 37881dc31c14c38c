#pragma once

#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Variants that the campaign may try after this trial, likeliest first: proposals that wait, and the changes that
// ranked next when it was chosen; as they are where it is reverted, and made to its own variant where it is kept. Of an
// edit the change has the patch, and the worker applies it to the source that the outcome leaves. None where nothing
// waits and nothing was ranked.
std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned);

}  // namespace pawl
