#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/charts.h"
#include "report/sections.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr int kMostPoints = 100;  // rows of the table under the chart

Cell ValueCell(bool there, double value, const std::string& unit) {
  if (!there) return {"-", Tone::kDim};
  return {absl::StrCat(NumberText(value), unit.empty() ? "" : " ", unit)};
}

Grid BeforeAfterGrid(const google::protobuf::RepeatedPtrField<v1::BeforeAfter>& rows) {
  Grid grid{.columns = {{"metric"}, {"start", true}, {"final", true}, {"meaning"}}};
  for (const v1::BeforeAfter& row : rows) {
    grid.rows.push_back({{row.metric(), Tone::kCode},
                         ValueCell(row.has_start(), row.start(), row.unit()),
                         ValueCell(row.has_best(), row.best(), row.unit()),
                         {row.meaning(), Tone::kDim}});
  }
  return grid;
}

Paragraph Missing(const v1::Report& report, const char* what) {
  return Paragraph{report.campaign().has_best() ? absl::StrCat("No ", what, ": the device has no counters.")
                                                : "No variant was kept.",
                   Tone::kDim};
}

}  // namespace

Section RooflineSection(const v1::Report& report) {
  Section section{"roofline", "Roofline", {}};
  const v1::Roofline& roofline = report.roofline();
  if (roofline.points().empty()) {
    section.blocks.push_back(Paragraph{report.campaign().has_best()
                                           ? "No roofline: the bundle's [work] section declares no floating-point "
                                             "operations."
                                           : "No variant was kept.",
                                       Tone::kDim});
    return section;
  }
  section.blocks.push_back(Chart{RooflineChart(report, kWideChart), RooflineChart(report, kNarrowChart)});
  section.blocks.push_back(Paragraph{
      CountsTraffic(roofline)
          ? "Traffic is the DRAM traffic that ncu counted, for every point. Data found in the L2 cache is not "
            "included."
          : "Traffic is the bytes that the bundle's [work] section says must move, for every point: ncu did "
            "not count DRAM traffic for all of them.",
      Tone::kDim});
  Facts facts;
  if (roofline.bandwidth_gb_s() > 0) {
    facts.facts.push_back({"DRAM bandwidth", {absl::StrCat(NumberText(roofline.bandwidth_gb_s()), " GB/s")}});
  }
  if (roofline.peak_gflop_s() > 0) {
    facts.facts.push_back({"peak", {absl::StrCat(NumberText(roofline.peak_gflop_s()), " GFLOP/s, ", roofline.peak())}});
  }
  section.blocks.push_back(std::move(facts));
  std::map<int, const v1::Iteration*> by_number;
  for (const v1::Iteration& iteration : report.iterations()) by_number[iteration.number()] = &iteration;
  Grid grid{.columns = {{"iteration", true}, {"change"}, {"GFLOP/s", true}, {"flop/byte", true}}};
  const int points = roofline.points_size();
  for (int i = std::max(0, points - kMostPoints); i < points; ++i) {
    const v1::RooflinePoint& point = roofline.points(i);
    const auto found = by_number.find(point.iteration());
    grid.rows.push_back({{absl::StrCat(point.iteration())},
                         {found == by_number.end() ? "-" : ChangeText(found->second->change()), Tone::kCode},
                         {NumberText(point.gflop_s())},
                         {NumberText(point.intensity())}});
  }
  section.blocks.push_back(std::move(grid));
  return section;
}

Section SpeedOfLightSection(const v1::Report& report) {
  Section section{"speed-of-light", "Speed of light", {}};
  if (report.speed_of_light().empty()) {
    section.blocks.push_back(Missing(report, "percentages of peak"));
    return section;
  }
  section.blocks.push_back(Chart{BarsChart(report.speed_of_light(), kWideChart.width),
                                 BarsChart(report.speed_of_light(), kNarrowChart.width)});
  section.blocks.push_back(BeforeAfterGrid(report.speed_of_light()));
  section.blocks.push_back(Paragraph{"Percentages of the GPU's peak, for the longest launch.", Tone::kDim});
  return section;
}

Section BeforeAfterSection(const v1::Report& report) {
  Section section{"before-after", "Before and after", {}};
  if (report.changes().empty()) {
    section.blocks.push_back(Missing(report, "metrics"));
    return section;
  }
  section.blocks.push_back(BeforeAfterGrid(report.changes()));
  return section;
}

}  // namespace pawl
