#pragma once

#include <string>
#include <vector>

#include "cli/table.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// An iteration in one line: number, verdict, change, speedup over parent, start and baseline, time, reason.
std::vector<Table::Column> IterationColumns();
std::vector<std::string> IterationCells(const v1::Iteration& iteration);

// The same with columns of fixed width, for lines that come one at a time.
std::string IterationLine(const v1::Iteration& iteration);

}  // namespace pawl
