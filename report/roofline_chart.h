#pragma once

#include <string>

#include "pawl/v1/report.pb.h"
#include "report/plot.h"

namespace pawl {

// Start, kept and final variants under the roof that bandwidth and arithmetic make; both axes are logarithmic. Empty:
// the report has no roofline.
std::string RooflineChart(const v1::Report& report, ChartSize size);

}  // namespace pawl
