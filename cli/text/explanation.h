#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The story of a campaign: start and gain, a block for each iteration (finding, change, prediction, measurement,
// verdict), how often each rule was right. `iterations` are all of them in order, as ListIterations has them. No line
// is longer than `width`.
std::string CampaignExplanation(const v1::Campaign& campaign, const std::vector<v1::Iteration>& iterations, int width);

// Why a change was tried and what came of it, from what GetIteration tells: the findings of its parent's evidence, the
// changes that were considered, the prediction, the measurement, the verdict. `all`: every change that was passed over,
// not only the most promising. No line is longer than `width`.
std::string IterationExplanation(const v1::Iteration& iteration, bool all, int width);

// "pawl", or the person or agent who proposed it; and why.
std::string ChosenByText(const v1::Iteration& iteration);

// "kept: faster; …" with every gate that it did not pass.
std::string VerdictText(const v1::Iteration& iteration);

}  // namespace pawl
