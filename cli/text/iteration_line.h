#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "TILE_M 64→16 (from 3)": where a change starts from matters when it is not the one before.
std::string ChangeCell(const v1::Iteration& iteration);
// A reason in fewer cells says nothing: the column is left out.
inline constexpr int kReadableReason = 16;
// Why, and the gates that it did not pass.
std::string ReasonCell(const v1::Iteration& iteration);

// An iteration in one line: number, verdict, time, speedup over baseline, parent and start, change, finding, prediction
// and reason. In columns of fixed width, for lines that come one at a time. On a terminal of `width` cells, columns
// that find no room are left out, those that say least first, and a change that is too long for its column is cut; 0:
// there is room for everything.
std::string IterationLine(const v1::Iteration& iteration, int width = 0);
// What stands above such lines.
std::string IterationLineTitle(int width = 0);

}  // namespace pawl
