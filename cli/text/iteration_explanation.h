#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Why a change was tried and what came of it, from what GetIteration tells: the findings of its parent's evidence, the
// changes that were considered, the prediction, the measurement, the verdict. `all`: every change that was passed over,
// not only the most promising. No line is longer than `width`.
std::string IterationExplanation(const v1::Iteration& iteration, bool all, int width);

// "pawl", or the person or agent who proposed it; and why.
std::string ChosenByText(const v1::Iteration& iteration);

// The reason without the figures of the score, which the table shows.
std::string PassedOverReason(const v1::PassedOver& passed);

// "kept: faster; …" with every gate that it did not pass.
std::string VerdictText(const v1::Iteration& iteration);

}  // namespace pawl
