#pragma once

namespace pawl {

// Student's t with `degrees` degrees of freedom: the value that it stays below with probability `p`, 0.5 <= p < 1.
double StudentTQuantile(double p, int degrees);

}  // namespace pawl
