// A variant that runs slower in the parent's seat than in the candidate's makes its children look faster than they are.
// Absolute times drift with the GPU's state, so a variant's times in different processes are compared relative to what
// was timed beside them: a witness (profiles/seat_rule.h), where there is one, and Pawl's anchor kernel.
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

// The iteration that is timed beside this parent and its candidates where one is about to be kept: relative to it the
// parent was timed when it was a candidate itself. Nothing: that of the start variant, which never was one, and of
// variants that were kept before there were witnesses.
std::optional<int> WitnessOf(const v1::Iteration& parent);

// Gives a trial by which a variant may be kept its witness, and what the parent took beside it.
void AddWitness(const CampaignState& campaign, const v1::TrialPlanned& planned, v1::Trial* trial);

// Sets as_candidate and as_parent, where an anchor was timed, and candidate_beside_witness and parent_beside_witness.
// The candidate's witness is its parent's, or the parent where that has none that is near enough. Two GPUs of one model
// differ: parent_beside_witness is set only if the one that measured the parent as a candidate measured it again. All
// are over the goal's sizes, as the verdict is: a trial that did not time all of them sets none, nor does one that
// ended with fewer pairs than KeepRule::first_pairs.
void SetSeatTimes(const CampaignState& campaign, const v1::TrialResult& result, v1::Iteration* iteration);

// Why the comparison can't be believed: relative to the witness, the parent took longer beside this candidate than it
// did as a candidate; or, relative to the anchor, longer than as a candidate and beside others. Either slows it; the
// second candidate of which that holds shows which (see RevisedBySeat). `share` of honest comparisons fail. Nothing: it
// can.
std::optional<std::string> SlowedParent(const CampaignState& campaign, const v1::Iteration& iteration,
                                        const v1::ProcessNoise& noise, double share);

// By how much longer the parent took beside this candidate than without it, relative to the witness: a logarithm, 0
// where nobody knows or it took no longer. What a comparison with the parent gained by that is no gain of the
// candidate.
double SlowdownBesideWitness(const CampaignState& campaign, const v1::Iteration& iteration,
                             const v1::ProcessNoise& noise);

// What `iteration`, judged but not yet applied, makes of its parent: one that is slower as a parent than it was as a
// candidate, beside more than one candidate, is rejected, and so is everything that was built on it. Relative to the
// witness: as soon as two candidates show it, and no fewer than show that it is not. Relative to the anchor: looks
// whenever the number of processes that measured it as a parent has doubled; all looks of its life together reject the
// gate's share of honest variants at most. Never the start variant, of which there is no candidate time that it could
// have won by.
std::vector<v1::RevisedIteration> RevisedBySeat(const CampaignState& campaign, const v1::Iteration& iteration,
                                                const v1::ProcessNoise& noise, const Gates& gates);

}  // namespace pawl
