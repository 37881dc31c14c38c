#pragma once

#include <set>
#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "profiles/gates.h"

namespace pawl {

// This iteration rejected, and with it those of `built_on_it` that have one of these verdicts. It has `failure` itself.
std::vector<v1::RevisedIteration> RejectedWith(const CampaignState& campaign, int iteration, const v1::Failure& failure,
                                               double value, const Gate& gate, const std::set<int>& built_on_it,
                                               const std::set<v1::Verdict>& verdicts);

}  // namespace pawl
