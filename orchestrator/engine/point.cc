#include "orchestrator/engine/point.h"

#include <algorithm>

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

}  // namespace pawl
