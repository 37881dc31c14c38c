#pragma once

#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Of campaigns/7, 0 to 4: the start, kept, reverted, rejected, and one that was kept from 1.
std::vector<v1::Iteration> SomeIterations();

// Iteration 4 of them with all that GetIteration adds to explain it: findings, score, what was passed over,
// prediction.
v1::Iteration ExplainedIteration();

// The variables and constraints that those iterations are of.
v1::Bundle SomeBundle();

}  // namespace pawl
