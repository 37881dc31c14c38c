#pragma once

#include <string>

#include "report/axis.h"
#include "report/svg.h"

namespace pawl {

// How large a chart is drawn: texts have one size, so a narrow page gets a picture of its own.
struct ChartSize {
  int width = 0;
  int height = 0;
};
inline constexpr ChartSize kWideChart = {880, 380};
inline constexpr ChartSize kNarrowChart = {370, 330};

// The field of a chart with two axes, and its frame.
struct Plot {
  double left, top, right, bottom;
  Axis x, y;
};

// Grid lines, ticks, and what the axes say.
void DrawAxes(const Plot& plot, const std::string& x_title, const std::string& y_title, Svg* svg);

// Writes a label beside a point where there is room, on whichever side; false: there is none.
bool DrawLabel(double x, double y, const std::string& label, const char* style, LabelPlaces* places, Svg* svg);

}  // namespace pawl
