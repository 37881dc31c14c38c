#pragma once

#include <optional>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/report.pb.h"

namespace pawl {

// The kept variants under the roof at the goal's size; no variants where the bundle names no floating-point work. The
// campaign must have a best variant.
std::optional<v1::Roofline> RooflineOf(const CampaignState& campaign);

}  // namespace pawl
