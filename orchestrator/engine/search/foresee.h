#pragma once

#include <vector>

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Chooses what would follow the trial that `event` plans, for each outcome that it may have, on copies of the campaign,
// and remembers it in the campaign's memo for Foresee. The event was decided and is not applied yet. Takes as long as
// some choices.
void LookAhead(const CampaignState& campaign, const v1::Event& event, const Chooser& chooser);

// Variants that the campaign may try after this trial, likeliest first: proposals that wait, as they are where it is
// reverted, and on top of its own variant where it is kept; then what LookAhead found. Of an edit the change has the
// patch, and the worker applies it to the source that the outcome leaves. None where nothing waits and nobody looked
// ahead.
std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned);

}  // namespace pawl
