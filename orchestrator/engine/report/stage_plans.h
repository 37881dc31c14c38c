#pragma once

#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/report.pb.h"

namespace pawl {

// What each stage was expected to take, which is the mean of the iterations before, and what it took. In the order of
// the stages; those that nothing went through are left out.
std::vector<v1::StagePlan> StagePlans(const std::vector<v1::Iteration>& iterations);

}  // namespace pawl
