#pragma once

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/gates.h"
#include "profiles/keep_rule.h"

namespace pawl {

// The iteration with its verdict, from a trial's result. The orchestrator judges from the samples itself; the worker's
// own comparison is ignored. The iteration's name, device, stages and times are filled in; create_time and end_time are
// the caller's. `expected_baseline_us` is the baseline's earlier time, for iteration 0; 0: unknown.
v1::Iteration Judge(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                    const Gates& gates = Gates::Default(), double expected_baseline_us = 0);

// The best variant measured against the start. speedup_over_start is 0 if it could not be measured; the interval's
// reason says why.
v1::TotalGain JudgeTotal(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result);
// The same, with what it makes of the campaign's iterations, in the end of its trial.
void FinishTotal(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                 v1::TrialFinished* finished);

// The end of an expedition compared with the best variant, its parent in this trial: kept if it is faster.
v1::RevisedIteration JudgeEnd(const CampaignState& campaign, const v1::TrialPlanned& planned,
                              const v1::TrialResult& result, const Gates& gates = Gates::Default());
// It could not be compared: it stays reverted.
v1::RevisedIteration UncomparedEnd(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                   const std::string& why);

// The verdict on an iteration that no worker could finish.
v1::Iteration PutAside(const CampaignState& campaign, const v1::TrialPlanned& planned, int attempts);

// Compares a stored iteration with a new measurement of the same variant.
v1::Verification Compare(const v1::Iteration& recorded, const v1::TrialResult& result, const v1::Bundle& bundle);

// Sets whether a change's prediction came true, apart from the verdict. Time: the speedup lies in the predicted range.
// Metric: it moved in the predicted direction; unchecked if either evidence lacks it.
void CheckPrediction(double speedup_over_parent, const v1::Evidence& parent, const v1::Evidence& candidate,
                     v1::Prediction* prediction);

}  // namespace pawl
