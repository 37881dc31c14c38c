#include "absl/strings/str_cat.h"
#include "report/axis.h"
#include "report/charts.h"
#include "report/svg.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr double kBar = 12, kRow = 54, kHead = 24, kFoot = 22;

}  // namespace

std::string BarsChart(const google::protobuf::RepeatedPtrField<v1::BeforeAfter>& shares, int width) {
  if (shares.empty()) return "";
  const double left = 14, right = width - 60, bottom = kHead + kRow * shares.size();
  const Axis x(Axis::Scale::kLinear, 0, 100, left, right);
  Svg svg(width, static_cast<int>(bottom + kFoot), "Percentages of the GPU's peak, start and final");
  svg.Bar(left, 6, 12, 10, "begin", "");
  svg.Text(left + 17, 15, "start", "label");
  svg.Bar(left + 70, 6, 12, 10, "final", "");
  svg.Text(left + 87, 15, "final", "label");
  for (const double tick : x.Ticks(5)) {
    svg.Line(x.At(tick), kHead, x.At(tick), bottom, "grid");
    svg.Text(x.At(tick), bottom + 15, absl::StrCat(TickText(tick), " %"), "tick", Svg::Anchor::kMiddle);
  }
  double top = kHead;
  for (const v1::BeforeAfter& share : shares) {
    svg.Text(left, top + 14, share.metric(), "bar-name");
    const auto bar = [&](double y, bool there, double value, const char* style, const char* word) {
      if (!there) {
        svg.Text(left, y + 10, absl::StrCat(word, ": not measured"), "tick");
        return;
      }
      const std::string text = absl::StrCat(NumberText(value), " ", share.unit());
      svg.Bar(left, y, x.At(value) - left, kBar, style, absl::StrCat(word, ": ", text, "\n", share.meaning()));
      svg.Text(x.At(value) + 5, y + 10, text, "tick");
    };
    bar(top + 20, share.has_start(), share.start(), "begin", "start");
    bar(top + 20 + kBar + 2, share.has_best(), share.best(), "final", "final");
    top += kRow;
  }
  return std::move(svg).Done();
}

}  // namespace pawl
