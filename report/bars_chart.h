#pragma once

#include <string>

#include "google/protobuf/repeated_field.h"
#include "pawl/v1/report.pb.h"

namespace pawl {

// Shares of peaks as bars, the start's above the final variant's. Empty: there are none.
std::string BarsChart(const google::protobuf::RepeatedPtrField<v1::BeforeAfter>& shares, int width);

}  // namespace pawl
