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

// One that fails is rejected, and so is everything that was built on it. Where the worker has no compute-sanitizer, all
// stay, with a note.
std::vector<v1::RevisedIteration> JudgeSanitized(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const v1::TrialResult& result, const Gates& gates = Gates::Default());
// No worker could run it: nothing is claimed that was not sanitized, so that all of them fail.
std::vector<v1::RevisedIteration> UnsanitizedFor(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const std::string& why, const Gates& gates = Gates::Default());

// The kept iterations among this one and what was built on it, rejected. The first has `failure` itself.
std::vector<v1::RevisedIteration> RejectedWith(const CampaignState& campaign, int iteration, const v1::Failure& failure,
                                               double value, const Gate& gate);

}  // namespace pawl
