#pragma once

#include <string>
#include <vector>

namespace pawl {

// Maps values to places on a chart. An empty or reversed range is corrected.
class Axis {
 public:
  enum class Scale { kLinear, kLog };

  // `from` and `to` are the places of the ends. A value of a log axis must be above 0.
  Axis(Scale scale, double low, double high, double from, double to);

  double At(double value) const;
  // At round values, no more than about `most`.
  std::vector<double> Ticks(int most) const;
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  std::vector<double> LinearTicks(int most) const;

  Scale scale_;
  double low_, high_, from_, to_;
};

// "0.25", "10", "20k", "1M".
std::string TickText(double value);

}  // namespace pawl
