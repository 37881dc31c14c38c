#pragma once

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "pawl/v1/report.pb.h"
#include "report/plot.h"

namespace pawl {

// Shares of peaks as bars, the start's above the final variant's. Empty: there are none.
std::string BarsChart(const google::protobuf::RepeatedPtrField<v1::BeforeAfter>& shares, int width);

// Iteration and speed over the baseline of each variant that was the best at its time. Where the total gain corrected
// what the steps had promised, the last one says so.
std::vector<std::pair<int, double>> BestSoFar(const v1::Report& report);

// Every iteration by its speed over the baseline, marked with its verdict, and the best so far as a line. Points that
// would lie on one another are drawn once, those that were kept on top. Empty: nothing was measured.
std::string JourneyChart(const v1::Report& report, ChartSize size);

// Whether traffic is ncu's count at the DRAM, otherwise what the bundle says must move; one for all points of a chart.
bool CountsTraffic(const v1::Roofline& roofline);

// Start, kept and final variants under the limits of bandwidth and arithmetic; both axes are logarithmic. Empty: the
// report has no roofline.
std::string RooflineChart(const v1::Report& report, ChartSize size);

}  // namespace pawl
