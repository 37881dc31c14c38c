#pragma once

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/comparison.h"
#include "profiles/gates.h"

namespace pawl {

// What a trial's result makes of its iteration. The orchestrator judges from the samples itself; a worker's opinion
// does not count. The iteration's name, device, stages and times are filled in; create_time and end_time are the
// caller's. `expected_baseline_us` is what the baseline took before, for iteration 0; 0: nobody knows.
v1::Iteration Judge(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                    const Gates& gates = Gates::Default(), double expected_baseline_us = 0);

// What the best variant beside the start came to. speedup_over_start is 0 where it could not be measured; the
// interval's reason says why.
v1::TotalGain JudgeTotal(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result);

// An iteration that no worker could bring to an end.
v1::Iteration PutAside(const CampaignState& campaign, const v1::TrialPlanned& planned, int attempts);

// A stored iteration against the same measured again.
v1::Verification Compare(const v1::Iteration& recorded, const v1::TrialResult& result, const v1::Bundle& bundle);

}  // namespace pawl
