#pragma once

#include <functional>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

// What earlier campaigns taught of turning a resource this way on this finding.
struct PatternGain {
  double log_gain = 0;  // expected log speedup
  double weight = 0;    // 0: nothing is known; 1: as sure as patterns get
};

// Empty: there are no patterns.
using PatternVoice = std::function<PatternGain(const v1::Finding&, v1::Resource, v1::Direction)>;

}  // namespace pawl
