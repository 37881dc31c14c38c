// What compute-sanitizer found of variants that were kept before it ran.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/gates.h"

namespace pawl {

// One that fails is rejected, and so is everything that descends from it, also what was reverted: it may have the same
// fault. One that takes too long, or too much memory, is rejected alone. The end of an expedition that was reverted
// beside one of these is compared with the best again.
std::vector<v1::RevisedIteration> JudgeSanitized(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const v1::TrialResult& result, const Gates& gates = Gates::Default());
// No worker could run it. Of several, each is tried by itself next; one alone is rejected, since nothing is claimed
// that was not sanitized.
std::vector<v1::RevisedIteration> UnsanitizedFor(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const std::string& why, const Gates& gates = Gates::Default());

}  // namespace pawl
