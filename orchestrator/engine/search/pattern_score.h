#pragma once

#include <functional>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// What earlier campaigns measured for changing a resource in this direction on this finding.
struct PatternGain {
  double log_gain = 0;  // expected log speedup
  double weight = 0;    // confidence: 0 without data, towards 1 with many trials
};

// The patterns' term of a change's score. Empty: there are no patterns.
using PatternScore = std::function<PatternGain(const v1::Finding&, v1::Resource, v1::Direction)>;

// The term from patterns, such as those of CampaignState::patterns(), for a GPU architecture ("sm_90") and a bundle.
// The bundle's own pattern is used if it was tried often enough, otherwise the one over all bundles. A pattern of
// another architecture of the same major version is used at half weight if the architecture itself has none; patterns
// of other major versions are ignored.
//
// The expected gain is the median gain of the timed trials, plus a term for how much more or less often the change was
// kept than changes are on average. It is negative for a change that was seldom kept.
PatternScore PatternScoreOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns,
                            const std::string& architecture, const std::string& bundle);

}  // namespace pawl
