#include "report/plot.h"

#include <algorithm>
#include <utility>

namespace pawl {
namespace {

constexpr double kTickRoom = 70;  // px between the ticks of the x axis
constexpr double kLineRoom = 30;  // and of the y axis
constexpr double kLabelHeight = 14;

}  // namespace

void DrawAxes(const Plot& plot, const std::string& x_title, const std::string& y_title, Svg* svg) {
  for (const double tick : plot.y.Ticks(static_cast<int>((plot.bottom - plot.top) / kLineRoom))) {
    svg->Line(plot.left, plot.y.At(tick), plot.right, plot.y.At(tick), "grid");
    svg->Text(plot.left - 6, plot.y.At(tick) + 4, TickText(tick), "tick", Svg::Anchor::kEnd);
  }
  for (const double tick : plot.x.Ticks(static_cast<int>((plot.right - plot.left) / kTickRoom))) {
    svg->Line(plot.x.At(tick), plot.top, plot.x.At(tick), plot.bottom, "grid");
    svg->Text(plot.x.At(tick), plot.bottom + 16, TickText(tick), "tick", Svg::Anchor::kMiddle);
  }
  svg->Line(plot.left, plot.bottom, plot.right, plot.bottom, "axis");
  svg->Line(plot.left, plot.top, plot.left, plot.bottom, "axis");
  svg->Text((plot.left + plot.right) / 2, plot.bottom + 34, x_title, "axis-title", Svg::Anchor::kMiddle);
  svg->UprightText(12, (plot.top + plot.bottom) / 2, y_title, "axis-title");
}

bool DrawLabel(double x, double y, const std::string& label, const char* style, LabelPlaces* places, Svg* svg) {
  const double width = TextWidth(label);
  const std::pair<double, double> corners[] = {{x - width - 7, y - kLabelHeight - 3},  // left of it and above
                                               {x + 7, y + 4},
                                               {x - width / 2, y - kLabelHeight - 7},
                                               {x - width / 2, y + 7},
                                               {x + 7, y - kLabelHeight - 3},
                                               {x - width - 7, y + 4},
                                               {x + 9, y - kLabelHeight / 2},
                                               {x - width - 9, y - kLabelHeight / 2}};
  for (const auto& [left, top] : corners) {
    if (!places->Take(left, top, width, kLabelHeight)) continue;
    svg->Text(left, top + 11, label, style);
    return true;
  }
  return false;
}

}  // namespace pawl
