#pragma once

#include <string>

#include "agent/mcp/json.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Metrics of two variants that differ by more than 1 %, launch by launch, those that differ most first: [{"launch",
// "metric", "before", "after", "ratio"}]. A metric that only one has says that the other was not profiled.
Json MetricPairs(const v1::Evidence& before, const v1::Evidence& after);

}  // namespace pawl
