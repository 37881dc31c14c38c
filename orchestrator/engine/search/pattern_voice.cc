#include "orchestrator/engine/search/pattern_voice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "orchestrator/engine/search/patterns.h"

namespace pawl {
namespace {

constexpr int kOwnTried = 5;     // before a bundle's own pattern speaks instead of all bundles'
constexpr double kHalfSure = 8;  // tried: half of the weight
constexpr double kOtherArchitecture = 0.5;
constexpr double kMostLogGain = 0.5;  // one kernel's tenfold gain is no other's
constexpr double kKeptWorth = 0.5;    // log speedup that being always kept is worth, over never

using Key = std::tuple<std::string, int, int>;  // rule, resource, direction
using Voices = std::map<Key, PatternGain>;

// "sm_90" without its last digit; empty: it is none.
std::string MajorOf(const std::string& architecture) {
  return architecture.size() > 4 && architecture.compare(0, 3, "sm_") == 0
             ? architecture.substr(0, architecture.size() - 1)
             : "";
}

double KeptShare(const std::vector<v1::Pattern>& patterns) {
  double tried = 4, kept = 1;  // a quarter, where little is known
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty()) continue;
    tried += pattern.tried();
    kept += pattern.kept();
  }
  return kept / tried;
}

PatternGain GainOf(const v1::Pattern& pattern, double usual) {
  const double tried = pattern.tried();
  PatternGain gain;
  gain.weight = tried / (tried + kHalfSure);
  gain.log_gain = kKeptWorth * (pattern.kept() / tried - usual);
  if (pattern.timed() > 0) {
    gain.log_gain += pattern.timed() / tried * std::clamp(std::log(pattern.median_gain()), -kMostLogGain, kMostLogGain);
  }
  return gain;
}

// Each pattern's word; what is in `voices` already stays.
void AddVoices(const std::vector<v1::Pattern>& patterns, double weight, Voices* voices) {
  const double usual = KeptShare(patterns);
  for (const bool own : {true, false}) {
    for (const v1::Pattern& pattern : patterns) {
      if (own == pattern.bundle().empty() || pattern.tried() < (own ? kOwnTried : 1)) continue;
      PatternGain gain = GainOf(pattern, usual);
      gain.weight *= weight;
      voices->try_emplace({pattern.rule(), pattern.effect().resource(), pattern.effect().direction()}, gain);
    }
  }
}

}  // namespace

PatternVoice VoiceOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& architecture,
                     const std::string& bundle) {
  const std::string major = MajorOf(architecture);
  if (major.empty()) return {};
  std::vector<v1::Pattern> same, similar;
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty() && pattern.bundle() != bundle) continue;
    if (pattern.architecture() == architecture) {
      same.push_back(pattern);
    } else if (MajorOf(pattern.architecture()) == major) {
      similar.push_back(pattern);
      similar.back().set_architecture(major);
    }
  }
  Voices voices;
  AddVoices(Merged(same), 1, &voices);
  AddVoices(Merged(similar), kOtherArchitecture, &voices);
  if (voices.empty()) return {};
  return [voices = std::move(voices)](const v1::Finding& finding, v1::Resource resource, v1::Direction direction) {
    const auto found = voices.find({finding.rule(), resource, direction});
    return found == voices.end() ? PatternGain() : found->second;
  };
}

}  // namespace pawl
