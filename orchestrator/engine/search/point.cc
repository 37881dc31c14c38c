#include "orchestrator/engine/search/point.h"

#include <algorithm>
#include <cmath>

namespace pawl {

Point PointOf(const v1::Bundle& bundle, const google::protobuf::Map<std::string, int32_t>& variant) {
  Point point;
  point.reserve(bundle.variables_size());
  for (const v1::Variable& variable : bundle.variables()) {
    const auto& values = variable.values();
    const auto value = variant.find(variable.name());
    const auto place = value == variant.end() ? values.end() : std::find(values.begin(), values.end(), value->second);
    point.push_back(static_cast<uint16_t>(place - values.begin()));
  }
  return point;
}

Scales ScalesOf(const v1::Bundle& bundle) {
  Scales scales;
  for (const v1::Variable& variable : bundle.variables()) {
    const auto& values = variable.values();
    std::vector<double>& scale = scales.emplace_back(values.begin(), values.end());
    if (scale.empty()) continue;
    if (*std::min_element(scale.begin(), scale.end()) > 0) {
      for (double& value : scale) value = std::log2(value);
    }
    const auto [least, most] = std::minmax_element(scale.begin(), scale.end());
    const double from = *least, range = std::max(*most - *least, 1e-9);
    for (double& value : scale) value = (value - from) / range;
  }
  return scales;
}

}  // namespace pawl
