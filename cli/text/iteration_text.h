#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Everything about one iteration, as GetIteration tells it.
std::string IterationText(const v1::Iteration& iteration);

// Its launches only: geometry, resources, metrics.
std::string EvidenceText(const v1::Evidence& evidence);

}  // namespace pawl
