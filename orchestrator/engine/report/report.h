#pragma once

#include <vector>

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/report.pb.h"
#include "profiles/profile_set.h"

namespace pawl {

// A campaign as a report has it, in whatever state it is. What only the store knows is left out: the iterations, host,
// toolchain, the compile command, and Pawl's version. Pure.
v1::Report ReportOf(const CampaignState& campaign, const Chooser& chooser, const ProfileSet& profiles, absl::Time now);

// What each stage was expected to take, which is the mean of the iterations before, and what it took. In the order of
// the stages; those that nothing went through are left out.
std::vector<v1::StagePlan> StagePlans(const std::vector<v1::Iteration>& iterations);

// Start, best and baseline at every size of the ladder, as far as they were measured. Where no worker timed them beside
// each other, the goal's size has the campaign's own times, and memory is what the variants' plans ask for.
std::vector<v1::SizeTime> SizeTimes(const CampaignState& campaign);

}  // namespace pawl
