#pragma once

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/report.pb.h"
#include "profiles/profile_set.h"

namespace pawl {

// A campaign as a report has it, in whatever state it is. What only the store knows is left out: the iterations, host,
// toolchain, the compile command, and Pawl's version. Pure.
v1::Report ReportOf(const CampaignState& campaign, const Chooser& chooser, const ProfileSet& profiles, absl::Time now);

}  // namespace pawl
