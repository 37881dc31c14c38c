#pragma once

#include <optional>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/report.pb.h"
#include "profiles/metrics.h"

namespace pawl {

// What the evidence says of the start's longest launch and of the best's: speed_of_light and changes. A metric that
// neither has is left out. The campaign must have a best variant.
void AddBeforeAfter(const CampaignState& campaign, const Metrics& metrics, v1::Report* report);

// The kept variants under the roof at the goal's size; no variants where the bundle names no floating-point work. The
// campaign must have a best variant.
std::optional<v1::Roofline> RooflineOf(const CampaignState& campaign);

}  // namespace pawl
