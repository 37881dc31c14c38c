#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pawl/v1/report.pb.h"
#include "report/plot.h"

namespace pawl {

// Iteration and speed over the baseline of each variant that was the best at its time. Where the total gain corrected
// what the steps had promised, the last one says so.
std::vector<std::pair<int, double>> BestSoFar(const v1::Report& report);

// Every iteration by its speed over the baseline, marked with its verdict, and the best so far as a line. Points that
// would lie on one another are drawn once, those that were kept on top. Empty: nothing was measured.
std::string JourneyChart(const v1::Report& report, ChartSize size);

}  // namespace pawl
