#pragma once

#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Variants that the campaign may try after this trial, likeliest first: proposals that wait, as they are where it is
// reverted, and on top of its own variant where it is kept; then what was found by looking ahead (look_ahead.h). Of an
// edit the change has the patch, and the worker applies it to the source that the outcome leaves. None where nothing
// waits and nobody looked ahead.
std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned);

}  // namespace pawl
