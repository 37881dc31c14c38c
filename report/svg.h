#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pawl {

// One picture. Colours are classes that the page's style gives, so that they follow light and dark. Whatever is given
// as text is escaped. For one thread.
class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };
  using Points = std::vector<std::pair<double, double>>;

  // `title` is what a screen reader says of it.
  Svg(int width, int height, const std::string& title);

  void Line(double x1, double y1, double x2, double y2, const char* style);
  void Polyline(const Points& points, const char* style);
  // A tooltip where `title` is not empty.
  void Circle(double x, double y, double radius, const char* style, const std::string& title);
  void Cross(double x, double y, double radius, const char* style, const std::string& title);
  void Bar(double x, double y, double width, double height, const char* style, const std::string& title);
  void Text(double x, double y, const std::string& text, const char* style, Anchor anchor = Anchor::kStart);
  void UprightText(double x, double y, const std::string& text, const char* style);

  std::string Done() &&;

 private:
  void Close(const char* element, const std::string& title);

  std::string text_;
};

// About how wide a text is in the charts' font.
double TextWidth(const std::string& text);

// Keeps labels from lying on one another.
class LabelPlaces {
 public:
  LabelPlaces(double left, double top, double right, double bottom)
      : left_(left), top_(top), right_(right), bottom_(bottom) {}

  // Nothing is to be written there.
  void Block(double x, double y, double width, double height) { taken_.push_back({x, y, width, height}); }
  // Takes the box, unless it is outside or meets one that was taken before.
  bool Take(double x, double y, double width, double height);

 private:
  struct Box {
    double x, y, width, height;
  };
  double left_, top_, right_, bottom_;
  std::vector<Box> taken_;
};

}  // namespace pawl
