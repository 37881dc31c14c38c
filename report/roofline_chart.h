#pragma once

#include <string>

#include "pawl/v1/report.pb.h"
#include "report/plot.h"

namespace pawl {

// Whether traffic is ncu's count at the DRAM, otherwise what the bundle says must move; one for all points of a chart.
bool CountsTraffic(const v1::Roofline& roofline);

// Start, kept and final variants under the limits of bandwidth and arithmetic; both axes are logarithmic. Empty: the
// report has no roofline.
std::string RooflineChart(const v1::Report& report, ChartSize size);

}  // namespace pawl
