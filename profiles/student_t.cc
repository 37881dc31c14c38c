#include "profiles/student_t.h"

#include <cmath>
#include <numbers>

namespace pawl {
namespace {

// P(|T| < t). A whole number of degrees has a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double CentralProbability(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees));
  const double cos_squared = std::cos(angle) * std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(angle) : 1;
  double sum = degrees == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cos_squared * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

}  // namespace

double StudentTQuantile(double p, int degrees) {
  const double central = 2 * p - 1;
  double low = 0;
  double high = 1;
  while (CentralProbability(high, degrees) < central && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (CentralProbability(middle, degrees) < central ? low : high) = middle;
  }
  return high;
}

}  // namespace pawl
