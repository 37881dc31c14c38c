#pragma once

#include <functional>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// What earlier campaigns taught of turning a resource this way on this finding.
struct PatternGain {
  double log_gain = 0;  // expected log speedup
  double weight = 0;    // 0: nothing is known; 1: as sure as patterns get
};

// Empty: there are no patterns.
using PatternVoice = std::function<PatternGain(const v1::Finding&, v1::Resource, v1::Direction)>;

// The voice of patterns, such as those of CampaignState::patterns(), on a GPU architecture ("sm_90") and of a bundle.
// The bundle's own pattern speaks where it was tried often enough, otherwise that over all bundles. One of another
// architecture of the same major version speaks at half weight where there is none of the same; others not at all.
//
// What it expects: the median gain of what was timed, and more or less for being kept more or less often than changes
// are on the whole: a change that was seldom kept has a voice against it.
PatternVoice VoiceOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& architecture,
                     const std::string& bundle);

}  // namespace pawl
