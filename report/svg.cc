#include "report/svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/escape.h"

namespace pawl {
namespace {

constexpr double kCharacter = 6.6;

const char* AnchorWord(Svg::Anchor anchor) {
  return anchor == Svg::Anchor::kStart ? "start" : anchor == Svg::Anchor::kMiddle ? "middle" : "end";
}

}  // namespace

Svg::Svg(int width, int height, const std::string& title) {
  const std::string escaped = EscapeHtml(title);
  absl::StrAppendFormat(&text_, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", width, height, escaped);
}

void Svg::Close(const char* element, const std::string& title) {
  if (title.empty()) {
    text_ += "/>\n";
  } else {
    absl::StrAppend(&text_, "><title>", EscapeHtml(title), "</title></", element, ">\n");
  }
}

void Svg::Line(double x1, double y1, double x2, double y2, const char* style) {
  absl::StrAppendFormat(&text_, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style, x1, y1,
                        x2, y2);
}

void Svg::Polyline(const Points& points, const char* style) {
  absl::StrAppendFormat(&text_, "<polyline class=\"%s\" points=\"", style);
  for (const auto& [x, y] : points) absl::StrAppendFormat(&text_, "%.1f,%.1f ", x, y);
  text_ += "\"/>\n";
}

void Svg::Circle(double x, double y, double radius, const char* style, const std::string& title) {
  absl::StrAppendFormat(&text_, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"", style, x, y, radius);
  Close("circle", title);
}

void Svg::Cross(double x, double y, double radius, const char* style, const std::string& title) {
  absl::StrAppendFormat(&text_, "<path class=\"%s\" d=\"M%.1f %.1fl%g %gm%g 0l%g %g\"", style, x - radius, y - radius,
                        2 * radius, 2 * radius, -2 * radius, 2 * radius, -2 * radius);
  Close("path", title);
}

void Svg::Bar(double x, double y, double width, double height, const char* style, const std::string& title) {
  absl::StrAppendFormat(&text_, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", style, x, y,
                        std::max(width, 0.0), height);
  Close("rect", title);
}

void Svg::Text(double x, double y, const std::string& text, const char* style, Anchor anchor) {
  absl::StrAppendFormat(&text_, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", style, x, y,
                        AnchorWord(anchor), EscapeHtml(text));
}

void Svg::UprightText(double x, double y, const std::string& text, const char* style) {
  absl::StrAppendFormat(&text_,
                        "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                        "transform=\"rotate(-90 %.1f %.1f)\">%s</text>\n",
                        style, x, y, x, y, EscapeHtml(text));
}

std::string Svg::Done() && { return std::move(text_) + "</svg>\n"; }

double TextWidth(const std::string& text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return kCharacter * static_cast<double>(std::count_if(text.begin(), text.end(), begins));
}

bool LabelPlaces::Take(double x, double y, double width, double height) {
  if (x < left_ || y < top_ || x + width > right_ || y + height > bottom_) return false;
  for (const Box& box : taken_) {
    if (x < box.x + box.width && box.x < x + width && y < box.y + box.height && box.y < y + height) return false;
  }
  taken_.push_back({x, y, width, height});
  return true;
}

}  // namespace pawl
