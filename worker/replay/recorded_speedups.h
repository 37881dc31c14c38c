#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "pawl/v1/recording.pb.h"

namespace pawl {

// What the pairs of a recording say: each variant was measured beside the start or beside another variant, whose own
// pairs lead on to the start.
struct RecordedSpeedups {
  // Over the start, by the variant's text; 0 of the start itself. Without those whose pairs do not lead to it.
  std::unordered_map<std::string, double> log_speedup;
  // Which variant's pairs do not lead to the start, and what to do; empty: all do.
  std::string problem;
};

RecordedSpeedups SpeedupsOf(const v1::RecordingHeader& header, const std::vector<v1::RecordedVariant>& variants);

}  // namespace pawl
