#include "orchestrator/engine/search/pattern_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "orchestrator/engine/search/patterns.h"

namespace pawl {
namespace {

constexpr int kMinOwnTrials = 5;  // a bundle's own pattern is used from here on
constexpr double kHalfWeightTrials = 8;
constexpr double kOtherArchitectureWeight = 0.5;
constexpr double kMaxLogGain = 0.5;    // medians are clipped: an extreme gain of one kernel does not transfer
constexpr double kKeptRateGain = 0.5;  // log speedup for a kept rate of 1 over one of 0

using Key = std::tuple<std::string, int, int>;  // rule, resource, direction
using Gains = std::map<Key, PatternGain>;

// "sm_90" without its last digit; empty: not an architecture.
std::string MajorOf(const std::string& architecture) {
  return architecture.size() > 4 && architecture.compare(0, 3, "sm_") == 0
             ? architecture.substr(0, architecture.size() - 1)
             : "";
}

double MeanKeptRate(const std::vector<v1::Pattern>& patterns) {
  double tried = 4, kept = 1;  // prior: a quarter is kept
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty()) continue;
    tried += pattern.tried();
    kept += pattern.kept();
  }
  return kept / tried;
}

PatternGain GainOf(const v1::Pattern& pattern, double mean_kept_rate) {
  const double tried = pattern.tried();
  PatternGain gain;
  gain.weight = tried / (tried + kHalfWeightTrials);
  gain.log_gain = kKeptRateGain * (pattern.kept() / tried - mean_kept_rate);
  if (pattern.timed() > 0) {
    gain.log_gain += pattern.timed() / tried * std::clamp(std::log(pattern.median_gain()), -kMaxLogGain, kMaxLogGain);
  }
  return gain;
}

// Does not replace entries of `gains`.
void AddGains(const std::vector<v1::Pattern>& patterns, double weight, Gains* gains) {
  const double mean_kept_rate = MeanKeptRate(patterns);
  for (const bool own : {true, false}) {
    for (const v1::Pattern& pattern : patterns) {
      if (own == pattern.bundle().empty() || pattern.tried() < (own ? kMinOwnTrials : 1)) continue;
      PatternGain gain = GainOf(pattern, mean_kept_rate);
      gain.weight *= weight;
      gains->try_emplace({pattern.rule(), pattern.effect().resource(), pattern.effect().direction()}, gain);
    }
  }
}

}  // namespace

PatternScore PatternScoreOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns,
                            const std::string& architecture, const std::string& bundle) {
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
  Gains gains;
  AddGains(Merged(same), 1, &gains);
  AddGains(Merged(similar), kOtherArchitectureWeight, &gains);
  if (gains.empty()) return {};
  return [gains = std::move(gains)](const v1::Finding& finding, v1::Resource resource, v1::Direction direction) {
    const auto found = gains.find({finding.rule(), resource, direction});
    return found == gains.end() ? PatternGain() : found->second;
  };
}

}  // namespace pawl
