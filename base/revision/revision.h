#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// Gives an iteration that was judged before the values that an event has for it. A campaign's state and the rows of the
// store are revised by this one function, so that both say the same.
void ReviseIteration(const v1::RevisedIteration& revision, v1::Iteration* iteration);

// A revision that changes nothing.
v1::RevisedIteration Unrevised(const v1::Iteration& iteration);

// The end of a trial that ran compute-sanitizer over kept variants.
bool IsOfSanitizer(const v1::TrialFinished& finished);

// What was left out of an iteration's checks, and why.
std::string NotesOf(const v1::Iteration& iteration);

// It seemed to be faster than a variant that was kept while it was measured, with which it is compared next.
bool AwaitsComparison(const v1::Iteration& iteration);

}  // namespace pawl
