#pragma once

#include <cstdint>
#include <functional>

#include "bench/measured_space.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

// Runs one campaign of the engine over a measured space, with events in memory. It begins with `start`, has no goal,
// and ends after `evaluations` variants (the start included) or when the engine ends it. A variant that the space has
// no measurement of is passed over and not counted, as in the other searches of that space; many in a row end the
// campaign. The same seed gives the same noise. `judged` is called after every counted iteration; if it returns false,
// the campaign ends. `decided`, where there is one, is called with each event that the engine decided on before it is
// applied.
void RunMeasuredCampaign(
    const MeasuredSpace& space, const MeasuredSpace::Entry& start, const Chooser& chooser, int evaluations,
    uint64_t seed, const std::vector<v1::Pattern>& patterns,
    const std::function<bool(const CampaignState& campaign, const v1::Iteration& iteration)>& judged,
    const std::function<void(const CampaignState& campaign, const v1::Event& event)>& decided = nullptr);

}  // namespace pawl
