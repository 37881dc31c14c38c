#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/cells.h"
#include "report/charts.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr double kFarBelow = 4;   // times slower than the start: drawn at the lower edge
constexpr double kCell = 5;       // px: two points of one verdict in a cell are drawn once
constexpr double kStrip = 20;     // px below the field for iterations without a speedup
constexpr int kCrowd = 500;       // iterations: marks are smaller
constexpr size_t kLabelled = 40;  // steps of the path: more would not find room

std::string TitleOf(const v1::Iteration& iteration) {
  std::string title = absl::StrCat("iteration ", iteration.number(), ", ", VerdictWord(iteration.verdict()), ": ",
                                   ChangeText(iteration.change()));
  if (iteration.has_parent()) absl::StrAppend(&title, " from ", iteration.parent());
  if (iteration.speedup_over_parent() > 0) {
    absl::StrAppend(&title, "\n", SpeedupText(iteration.speedup_over_parent()), " over its parent");
  }
  if (iteration.speedup_over_baseline() > 0) {
    absl::StrAppend(&title, "\n", SpeedupText(iteration.speedup_over_baseline()), " over the baseline");
  }
  if (iteration.time_us() > 0) absl::StrAppend(&title, "\n", TimeText(iteration.time_us()));
  if (IsProposed(iteration)) absl::StrAppend(&title, "\nproposed by ", iteration.author());
  return title;
}

// Draws at most one of a kind in each cell.
class Thinning {
 public:
  bool Takes(double x, double y, int kind) {
    return cells_.insert({std::lround(x / kCell), std::lround(y / kCell), kind}).second;
  }

 private:
  std::set<std::tuple<long, long, int>> cells_;
};

struct Range {
  double low, high;
};

Range SpeedRange(const v1::Report& report) {
  Range range = {1, 1};
  double start = 0;
  for (const v1::Iteration& iteration : report.iterations()) {
    const double speed = iteration.speedup_over_baseline();
    if (!(speed > 0) || !std::isfinite(speed)) continue;
    if (start == 0) start = speed;
    range.high = std::max(range.high, speed);
    if (speed > start / kFarBelow) range.low = std::min(range.low, speed);
  }
  range.high = std::max(range.high, report.campaign().spec().goal().speedup());
  return {range.low / 1.12, range.high * 1.25};  // above the fastest there is room for its label
}

struct Reference {
  double at;
  std::string label;
};

// What the speeds are compared with, as far as the plot shows it.
std::vector<Reference> ReferencesOf(const v1::Campaign& campaign, const Plot& plot) {
  std::vector<Reference> references = {{1, campaign.baseline_us() > 0 ? "baseline" : "start = baseline"}};
  const double goal = campaign.spec().goal().speedup();
  references.push_back({goal, absl::StrCat("goal ", NumberText(goal), "x")});
  std::erase_if(references,
                [&](const Reference& one) { return !(one.at > 0) || one.at < plot.y.low() || one.at > plot.y.high(); });
  return references;
}

// The name of a horizontal line, where there is room along it.
void NameReference(const Plot& plot, const Reference& reference, LabelPlaces* places, Svg* svg) {
  const std::string& label = reference.label;
  const double y = plot.y.At(reference.at), width = TextWidth(label);
  double left = plot.right - width - 4, top = y - 15;
  for (double x = left; x > plot.left; x -= width / 2) {
    const bool above = places->Take(x, y - 15, width, 13);
    if (!above && !places->Take(x, y + 2, width, 13)) continue;
    left = x;
    top = above ? y - 15 : y + 2;
    break;
  }
  svg->Text(left, top + 10, label, "label");
}

void DrawLegend(double left, double y, Svg* svg) {
  const auto word = [&](const char* text) {
    svg->Text(left + 9, y + 4, text, "label");
    left += TextWidth(text) + 30;
  };
  svg->Circle(left, y, 4, "kept", "");
  word("kept");
  svg->Circle(left, y, 3, "reverted", "");
  word("reverted");
  svg->Cross(left, y, 3, "rejected", "");
  word("rejected");
  svg->Line(left - 8, y, left + 4, y, "best-line");
  word("best so far");
}

}  // namespace

std::vector<std::pair<int, double>> BestSoFar(const v1::Report& report) {
  std::vector<std::pair<int, double>> line;
  bool settled = false;
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.verdict() != v1::KEPT || !(iteration.speedup_over_baseline() > 0)) continue;
    const bool final = report.campaign().has_best() && iteration.number() == report.campaign().best();
    if (settled) break;
    if (final || line.empty() || iteration.speedup_over_baseline() > line.back().second) {
      line.push_back({iteration.number(), iteration.speedup_over_baseline()});
    }
    settled = final;
  }
  return line;
}

std::string JourneyChart(const v1::Report& report, ChartSize size) {
  const std::vector<std::pair<int, double>> best = BestSoFar(report);
  if (best.empty()) return "";
  const int last = report.iterations(report.iterations_size() - 1).number();
  const Range speeds = SpeedRange(report);
  const bool rejected =
      std::any_of(report.iterations().begin(), report.iterations().end(),
                  [](const v1::Iteration& one) { return !(one.speedup_over_baseline() > 0) && !one.untried(); });
  const double strip = rejected ? kStrip : 0;
  const double left = 58, top = 28, right = size.width - 14, bottom = size.height - 44 - strip;
  const Plot plot = {left,
                     top,
                     right,
                     bottom,
                     Axis(Axis::Scale::kLinear, 0, std::max(last, 1), left + 8, right - 10),
                     Axis(Axis::Scale::kLog, speeds.low, speeds.high, bottom, top)};
  Svg svg(size.width, size.height, "Journey: speedup over the baseline by iteration, with each verdict");
  // The x axis is below the strip of rejected iterations.
  const Plot frame = {left, top, right, bottom + strip, plot.x, plot.y};
  DrawAxes(frame, "iteration", "speedup over the baseline", &svg);
  svg.Line(left, bottom, right, bottom, "grid");
  DrawLegend(left + 6, 12, &svg);

  Svg::Points line;
  for (const auto& [number, speed] : best) {
    if (!line.empty()) line.push_back({plot.x.At(number), line.back().second});
    line.push_back({plot.x.At(number), plot.y.At(speed)});
  }
  line.push_back({plot.x.At(last), line.back().second});
  svg.Polyline(line, "best-line");

  const std::set<int> path(report.path().begin(), report.path().end());
  const double radius = report.iterations_size() > kCrowd ? 2 : 3;
  Thinning thinning;
  LabelPlaces places(left, top, right, bottom);
  for (size_t i = 1; i < line.size(); ++i) {
    const auto& [from_x, from_y] = line[i - 1];
    const auto& [to_x, to_y] = line[i];
    places.Block(from_x, std::min(from_y, to_y) - 1, to_x - from_x + 1, std::abs(from_y - to_y) + 2);
  }
  const std::vector<Reference> references = ReferencesOf(report.campaign(), plot);
  for (const Reference& reference : references) {
    const double y = plot.y.At(reference.at);
    svg.Line(left, y, right, y, "reference");
    places.Block(left, y - 1, right - left, 2);
  }
  std::vector<const v1::Iteration*> steps;
  for (const bool kept : {false, true}) {
    for (const v1::Iteration& iteration : report.iterations()) {
      if ((iteration.verdict() == v1::KEPT) != kept || iteration.untried()) continue;
      const double x = plot.x.At(iteration.number());
      const bool timed = iteration.speedup_over_baseline() > 0;
      const double y = timed ? plot.y.At(iteration.speedup_over_baseline()) : bottom + strip / 2;
      const bool on_path = path.contains(iteration.number());
      if (!thinning.Takes(x, y, iteration.verdict()) && !on_path) continue;
      if (!timed || iteration.verdict() == v1::REJECTED) {
        svg.Cross(x, y, 3, "rejected", TitleOf(iteration));
      } else {
        svg.Circle(x, y, kept ? radius + 1 : radius, kept ? "kept" : "reverted", TitleOf(iteration));
        places.Block(x - 4, y - 4, 8, 8);
        if (kept && on_path) steps.push_back(&iteration);
      }
    }
  }
  // Labels keep clear of what is drawn already; references have room along their whole line, and come last.
  if (steps.size() > kLabelled) steps.clear();
  for (const v1::Iteration* step : steps) {
    DrawLabel(plot.x.At(step->number()), plot.y.At(step->speedup_over_baseline()), ChangeText(step->change()), "label",
              &places, &svg);
  }
  for (const Reference& reference : references) NameReference(plot, reference, &places, &svg);
  return std::move(svg).Done();
}

}  // namespace pawl
