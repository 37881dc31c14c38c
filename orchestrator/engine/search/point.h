#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/map.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A variant as the places (indices) of its values in their variables' lists, in the bundle's order of variables.
using Point = std::vector<uint16_t>;

// The point of a variant. A value that is not in its list has the place past its end.
Point PointOf(const v1::Bundle& bundle, const google::protobuf::Map<std::string, int32_t>& variant);

// The position of each value of each variable between its smallest (0) and its largest (1), on a logarithmic scale, or
// on a linear one if a value is not positive.
using Scales = std::vector<std::vector<double>>;
Scales ScalesOf(const v1::Bundle& bundle);

}  // namespace pawl
