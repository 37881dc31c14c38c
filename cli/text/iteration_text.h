#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

// Everything about one iteration, as GetIteration tells it.
std::string IterationText(const v1::Iteration& iteration);

// Its launches only: geometry, resources, metrics.
std::string EvidenceText(const v1::Evidence& evidence);

// A finding in a few lines: its rule, what it says, the values the rule saw beside their thresholds, what it wants,
// what ncu says. `note` stands behind the rule's name: "served by this change". No line is longer than `width`.
std::string FindingText(const v1::Finding& finding, const std::string& note, int width);

// "waves 0.01515 < 1, grid_size 2 < 132".
std::string SeenText(const v1::Finding& finding);

// "prediction (mark): waves did not rise; saw 0.9, threshold 1".
std::string GateText(const v1::FailedGate& gate);

}  // namespace pawl
