#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What became of a campaign, in a few lines: start, best, speedups, the changes that were kept. `path` may be empty.
std::string SummaryText(const v1::Campaign& campaign, const std::vector<v1::Iteration>& path);

// What the best variant gained at every size that it was measured at, with a line that says where it is slower than the
// start or the baseline. Empty: it was measured at one size only.
std::string SizesText(const v1::Campaign& campaign);
// The variants that serve the sizes and the rule that picks one; empty: there is one.
std::string PortfolioText(const v1::Campaign& campaign);

// It could go on, and waits for the end of maintenance or for a limit of its author; the message says so.
bool IsHeld(const v1::Campaign& campaign);

// 0 improved or at the goal, 3 finished without an improvement, 1 failed or cancelled.
int ExitCodeOf(const v1::Campaign& campaign);

// Where a campaign stands: "attention at main: iteration 5 of 50, best 1.56x over the baseline, goal 2.50x, 57 min
// left".
std::string CampaignLine(const v1::Campaign& campaign);

// The kept iterations that lead from the start to this one, first to last.
std::vector<v1::Iteration> KeptPathIn(const std::vector<v1::Iteration>& iterations, int number);

// A line a step: number, change, speedup over the parent, time.
std::string PathText(const std::vector<v1::Iteration>& path);

}  // namespace pawl
