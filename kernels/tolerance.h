// What tolerance a bundle can justify. The formulas are in docs/verdicts.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// Half the distance between 1 and the next larger value; 0 for integers.
double UnitRoundoff(v1::DataType type);

// How many values of one input a value of an output may be summed from, by the shapes alone: the elements of the input
// over the extents that both begin with. The last extent of an input always counts. Of several inputs the largest.
double ReductionLength(const v1::Plan& plan, const v1::PlanTensor& output);

// What rounding alone does to a sum of the output's length whose terms may cancel, as a share of the result.
double RoundingOfSums(const v1::Plan& plan, const v1::PlanTensor& output);

// The largest relative limit that types and reduction length justify.
double MostRelative(const v1::Plan& plan, const v1::PlanTensor& output);
// The same of the absolute limit, for an output whose values have this root mean square.
double MostAbsolute(const v1::Plan& plan, const v1::PlanTensor& output, double rms);

// Two digits, for a message that proposes a limit.
double RoundedDown(double limit);

// Why a tolerance is far above what its output justifies at each of these sizes, with the value that would do; nothing
// where none is.
std::optional<std::string> UnjustifiedTolerance(const std::vector<const v1::Plan*>& plans);

}  // namespace pawl
