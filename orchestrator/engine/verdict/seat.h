// A variant that runs slower in the parent's seat than in the candidate's makes its children look faster than they are.
// Absolute times drift with the GPU's state, so a variant's times in different processes are compared relative to the
// anchor kernel that was timed beside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/gates.h"

namespace pawl {

// Sets as_candidate and as_parent; nothing where a worker of version 0.1.0 timed no anchor.
void SetSeatTimes(const v1::TrialResult& result, v1::Iteration* iteration);

// Why the comparison can't be believed: the parent took longer beside this candidate than it did before, as a candidate
// and beside others. Either slows it; the second candidate of which that holds shows which (see RevisedBySeat).
// `share` of honest comparisons fail. Nothing: it can.
std::optional<std::string> SlowedParent(const CampaignState& campaign, const v1::Iteration& iteration,
                                        const v1::ProcessNoise& noise, double share);

// What `iteration`, judged but not yet applied, makes of its parent: one that is slower as a parent than it was as a
// candidate, beside more than one candidate, is rejected, and so is everything that was built on it. Looks whenever the
// number of processes that measured it as a parent has doubled; all looks of its life together reject the gate's share
// of honest variants at most. Never the start variant, of which there is no candidate time that it could have won by.
std::vector<v1::RevisedIteration> RevisedBySeat(const CampaignState& campaign, const v1::Iteration& iteration,
                                                const v1::ProcessNoise& noise, const Gates& gates);

}  // namespace pawl
