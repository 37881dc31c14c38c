#pragma once

#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Of campaigns/7, 0 to 4: the start, kept, reverted, rejected, and one that was kept from 1.
std::vector<v1::Iteration> SomeIterations();

}  // namespace pawl
