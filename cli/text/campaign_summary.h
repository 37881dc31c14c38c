#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What became of a campaign, in a few lines: start, best, speedups, the changes that were kept. `path` may be empty.
// `untried`: of its iterations so many are not in the recording, and count as nothing.
std::string SummaryText(const v1::Campaign& campaign, const std::vector<v1::Iteration>& path, int untried = 0);

// Iteration 0 changes nothing: these leave it out.
int ChangesTried(const v1::Campaign& campaign);
int ChangesKept(const v1::Campaign& campaign);

// 0 improved or at the goal, 3 finished without an improvement, 1 failed or cancelled.
int ExitCodeOf(const v1::Campaign& campaign);

}  // namespace pawl
