#pragma once

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// Gives an iteration that was judged before the values that an event has for it. A campaign's state and the rows of the
// store are revised by this one function, so that both say the same.
void ReviseIteration(const v1::RevisedIteration& revision, v1::Iteration* iteration);

// It seemed to be faster than a variant that was kept while it was measured, with which it is compared next.
bool AwaitsComparison(const v1::Iteration& iteration);

}  // namespace pawl
