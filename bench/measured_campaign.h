#pragma once

#include <cstdint>
#include <functional>

#include "bench/measured_space.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

// One campaign of the engine itself in a measured space, fed with events in memory: from `start`, without a goal, until
// so many variants were evaluated, the start included, or it ends by itself. A variant that was not measured is passed
// over and counts as none: other searches in the space do not see it either; many in a row end it. The same seed gives
// the same noise. `judged` is called after every iteration that counts; false: that was the last.
void RunMeasuredCampaign(
    const MeasuredSpace& space, const MeasuredSpace::Entry& start, const Chooser& chooser, int evaluations,
    uint64_t seed, const std::vector<v1::Pattern>& patterns,
    const std::function<bool(const CampaignState& campaign, const v1::Iteration& iteration)>& judged);

}  // namespace pawl
