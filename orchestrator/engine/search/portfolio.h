#pragma once

#include <optional>
#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The legs that a campaign has at most: one over all sizes, and one for each variant of its portfolio.
int MostLegs(const v1::Goal& goal);

// The next leg of a campaign for a portfolio, after the present one has ended. The second is over those of the goal's
// sizes at which the first left the baseline ahead; where none is, or there is no baseline, at which a variant was
// measured that is faster. The third is over the other sizes, further ones as the second. Nothing: no size is left to
// gain at, or there were as many legs as there may be.
std::optional<v1::Leg> NextLeg(const CampaignState& campaign);

// Sizes between neighbours of the goal, in the dimensions of [hidden]: no variant was chosen for being fast there, so a
// rule can be checked there. They lie in the ranges of [hidden], and none is larger than both neighbours. Each has the
// values of a neighbour in the other dimensions.
std::vector<v1::Size> SizesBetween(const v1::Bundle& bundle, const v1::Goal& goal);

// The best of every leg and the rule that picks one of them, from their measurements beside the start; of one member
// where what a later leg found serves all sizes best. Nothing: what the first leg found does, or the campaign is not
// for a portfolio.
std::optional<v1::Portfolio> PortfolioOf(const CampaignState& campaign);

}  // namespace pawl
