#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/charts.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr double kRooflineCell = 5;  // px: two points in it are one
constexpr double kMargin = 2.5;      // times, around what is shown

std::string PointTitle(const v1::RooflinePoint& point, const v1::Report& report) {
  std::string title = absl::StrCat("iteration ", point.iteration());
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.number() != point.iteration()) continue;
    absl::StrAppend(&title, ": ", ChangeText(iteration.change()));
    break;
  }
  return absl::StrCat(title, "\n", NumberText(point.gflop_s()), " GFLOP/s\n", NumberText(point.intensity()),
                      " flop/byte");
}

struct Bounds {
  double x_low, x_high, y_low, y_high;
};

Bounds BoundsOf(const v1::Roofline& roofline) {
  Bounds bounds = {1e300, 0, 1e300, 0};
  const auto show = [&](double x, double y) {
    bounds = {std::min(bounds.x_low, x), std::max(bounds.x_high, x), std::min(bounds.y_low, y),
              std::max(bounds.y_high, y)};
  };
  for (const v1::RooflinePoint& point : roofline.points()) show(point.intensity(), point.gflop_s());
  if (roofline.bandwidth_gb_s() > 0 && roofline.peak_gflop_s() > 0) {
    show(roofline.peak_gflop_s() / roofline.bandwidth_gb_s(), roofline.peak_gflop_s());
  }
  return {bounds.x_low / kMargin, bounds.x_high * kMargin, bounds.y_low / kMargin, bounds.y_high * kMargin};
}

void DrawRoof(const v1::Roofline& roofline, const Plot& plot, LabelPlaces* places, Svg* svg) {
  const double bandwidth = roofline.bandwidth_gb_s(), peak = roofline.peak_gflop_s();
  const double x_low = plot.x.low(), x_high = plot.x.high();
  const double ridge = bandwidth > 0 && peak > 0 ? std::clamp(peak / bandwidth, x_low, x_high) : x_high;
  if (bandwidth > 0) {
    const double enters = std::max(x_low, plot.y.low() / bandwidth);  // where the slope comes into the field
    const double leaves = std::min(ridge, plot.y.high() / bandwidth);
    if (enters < leaves) {
      svg->Polyline(
          {{plot.x.At(enters), plot.y.At(enters * bandwidth)}, {plot.x.At(leaves), plot.y.At(leaves * bandwidth)}},
          "roof");
      const double middle = std::sqrt(enters * leaves);
      DrawLabel(plot.x.At(middle), plot.y.At(middle * bandwidth), absl::StrCat("DRAM ", NumberText(bandwidth), " GB/s"),
                "label", places, svg);
    }
  }
  if (peak > 0) {
    const double from = bandwidth > 0 ? ridge : x_low;
    svg->Line(plot.x.At(from), plot.y.At(peak), plot.right, plot.y.At(peak), "roof");
    const std::string label = absl::StrCat(roofline.peak(), " ", NumberText(peak), " GFLOP/s");
    const double width = TextWidth(label);
    if (places->Take(plot.right - width - 4, plot.y.At(peak) - 18, width, 13)) {
      svg->Text(plot.right - 4, plot.y.At(peak) - 7, label, "label", Svg::Anchor::kEnd);
    }
  }
}

}  // namespace

bool CountsTraffic(const v1::Roofline& roofline) {
  return std::all_of(roofline.points().begin(), roofline.points().end(),
                     [](const v1::RooflinePoint& point) { return point.counted(); });
}

std::string RooflineChart(const v1::Report& report, ChartSize size) {
  const v1::Roofline& roofline = report.roofline();
  if (roofline.points().empty()) return "";
  const Bounds bounds = BoundsOf(roofline);
  const double left = 66, top = 14, right = size.width - 14, bottom = size.height - 44;
  const Plot plot = {left,
                     top,
                     right,
                     bottom,
                     Axis(Axis::Scale::kLog, bounds.x_low, bounds.x_high, left, right),
                     Axis(Axis::Scale::kLog, bounds.y_low, bounds.y_high, bottom, top)};
  Svg svg(size.width, size.height, "Roofline: start, kept and final variants under the limits of the GPU");
  DrawAxes(plot,
           CountsTraffic(roofline) ? "floating-point operations per byte of DRAM traffic"
                                   : "floating-point operations per byte that must move",
           "GFLOP/s", &svg);
  LabelPlaces places(left, top, right, bottom);

  for (const v1::RooflinePoint& point : roofline.points()) {
    places.Block(plot.x.At(point.intensity()) - 6, plot.y.At(point.gflop_s()) - 6, 12, 12);
  }
  DrawRoof(roofline, plot, &places, &svg);
  // Start and final are always drawn, the final one on top of all.
  std::set<std::pair<long, long>> drawn;
  const int final = roofline.points_size() - 1;
  for (int i = 0; i <= final; ++i) {
    const v1::RooflinePoint& point = roofline.points(i);
    const double x = plot.x.At(point.intensity()), y = plot.y.At(point.gflop_s());
    const bool named = point.iteration() == 0 || i == final;
    if (!drawn.insert({std::lround(x / kRooflineCell), std::lround(y / kRooflineCell)}).second && !named) continue;
    const char* style = i == final ? "final" : point.iteration() == 0 ? "begin" : "kept";
    svg.Circle(x, y, named ? 6 : 4, style, PointTitle(point, report));
  }
  const auto label = [&](const v1::RooflinePoint& point, const std::string& text) {
    DrawLabel(plot.x.At(point.intensity()), plot.y.At(point.gflop_s()), text, "label", &places, &svg);
  };
  label(roofline.points(final), final == 0 ? "start = final" : "final");
  if (final > 0 && roofline.points(0).iteration() == 0) label(roofline.points(0), "start");
  return std::move(svg).Done();
}

}  // namespace pawl
