#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "TILE_M 64→16 (from 3)": where a change starts from matters when it is not the one before.
std::string ChangeCell(const v1::Iteration& iteration);
// Why, and the gates that it did not pass.
std::string ReasonCell(const v1::Iteration& iteration);

// A recording lacks the variant: nothing was learnt, and the history is easier to read without.
bool IsUntried(const v1::Iteration& iteration);

// An iteration in one line: number, verdict, change, speedup over parent, start and baseline, time, reason.
std::vector<std::string> IterationCells(const v1::Iteration& iteration);

// The same in columns of fixed width, for lines that come one at a time; finding and prediction stand before the
// reason.
std::string IterationLine(const v1::Iteration& iteration);

}  // namespace pawl
