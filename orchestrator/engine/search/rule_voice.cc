#include "orchestrator/engine/search/rule_voice.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr double kLeastWeight = 0.05, kMostWeight = 2;

// A larger value of these means so many times more of the resource, or nearly.
bool Scales(v1::Resource resource) {
  switch (resource) {
    case v1::RESOURCE_PARALLELISM:
    case v1::RESOURCE_VECTOR_WIDTH:
    case v1::RESOURCE_UNROLLING:
    case v1::RESOURCE_COALESCING:
    case v1::RESOURCE_REGISTERS:
    case v1::RESOURCE_SHARED_MEMORY:
      return true;
    default:
      return false;
  }
}

// How many times more of what is wanted; 0: the values do not say. A launch that is gone was all that it took.
double Ratio(v1::Resource resource, double deficit, int32_t from, int32_t to) {
  if (resource == v1::RESOURCE_LAUNCHES && deficit > 0) return 1 / deficit;
  if (!Scales(resource) || from <= 0 || to <= 0) return 0;
  return to > from ? static_cast<double>(to) / from : static_cast<double>(from) / to;
}

int PlacesApart(const v1::Variable& variable, int32_t from, int32_t to) {
  const auto& values = variable.values();
  const auto a = std::find(values.begin(), values.end(), from), b = std::find(values.begin(), values.end(), to);
  return static_cast<int>(std::abs(a - b));
}

// Doublings between the step and the one that the deficit asks for, nearest value first. Without a ratio: places beyond
// the neighbour.
double OffTarget(const v1::Variable& variable, int32_t from, int32_t to, double ratio, double deficit) {
  if (ratio <= 0 || deficit <= 0) return PlacesApart(variable, from, to) - 1;
  return std::abs(std::log2(ratio) + std::log2(deficit));
}

}  // namespace

RuleVoice::RuleVoice(std::vector<v1::Finding> findings, std::map<std::string, double> weights,
                     const RuleSettings& settings, PatternVoice patterns)
    : findings_(std::move(findings)),
      weights_(std::move(weights)),
      settings_(settings),
      patterns_(std::move(patterns)) {}

double RuleVoice::Weight(const std::string& rule) const {
  const auto weight = weights_.find(rule);
  return weight == weights_.end() ? 1 : weight->second;
}

RuleVoice::Opinion RuleVoice::Of(const v1::Variable& variable, int32_t from, int32_t to) const {
  Opinion opinion;
  v1::Effect launches;
  launches.set_resource(v1::RESOURCE_LAUNCHES);
  launches.set_direction(v1::DIRECTION_MORE);
  const double launch_share = Gives(variable, from, to, launches) ? settings_.added_launch : 1;
  for (const v1::Finding& finding : findings_) {
    const int phase = finding.phase() - v1::PHASE_PARALLELISM;
    double promise =
        settings_.gain * finding.severity() * Weight(finding.rule()) * std::pow(settings_.later_phase, phase);
    for (const v1::Effect& wanted : finding.wants()) {
      if (Gives(variable, from, to, wanted)) {
        const double ratio = Ratio(wanted.resource(), finding.deficit(), from, to);
        // The best step of the list counts in full: a list that ends before the target is no fault of its last value.
        double nearest = OffTarget(variable, from, to, ratio, finding.deficit());
        for (const int32_t value : variable.values()) {
          if (!Gives(variable, from, value, wanted)) continue;
          nearest =
              std::min(nearest, OffTarget(variable, from, value,
                                          Ratio(wanted.resource(), finding.deficit(), from, value), finding.deficit()));
        }
        const double off = OffTarget(variable, from, to, ratio, finding.deficit()) - nearest;
        const double gain = promise * launch_share * std::max(0.0, 1 - settings_.misfit * off);
        if (gain > opinion.log_gain) {
          opinion.log_gain = gain;
          opinion.served = &finding;
          opinion.effect = wanted;
          opinion.ratio = ratio;
        }
      }
      promise *= settings_.next_want;
    }
  }
  if (patterns_ && opinion.served != nullptr) {
    const PatternGain gain = patterns_(*opinion.served, opinion.effect.resource(), opinion.effect.direction());
    opinion.pattern_gain = gain.weight * gain.log_gain;
  }
  return opinion;
}

const v1::Finding* RuleVoice::GridTooSmall() const {
  for (const v1::Finding& finding : findings_) {
    if (finding.phase() != v1::PHASE_PARALLELISM) continue;
    for (const v1::SeenValue& seen : finding.seen()) {
      if (seen.metric() == "waves" && seen.value() < 1) return &finding;
    }
  }
  return nullptr;
}

std::map<std::string, double> RuleWeights(const CampaignState& campaign, const RuleSettings& settings) {
  std::map<std::string, double> weights;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.finding().rule().empty() || campaign.IsUntried(iteration.number())) continue;
    double& weight = weights.try_emplace(iteration.finding().rule(), 1).first->second;
    const bool kept = iteration.verdict() == v1::KEPT;
    switch (iteration.prediction().outcome()) {
      case v1::Prediction::CAME_TRUE:  // by so little that it was taken back: that is no credit
        weight *= kept ? settings.came_true : settings.failed;
        break;
      case v1::Prediction::FAILED:
        weight *= kept ? settings.kept_otherwise : settings.failed;
        break;
      default:  // nobody checked: the verdict has to do
        weight *= kept ? settings.came_true : settings.failed;
    }
    weight = std::clamp(weight, kLeastWeight, kMostWeight);
  }
  return weights;
}

bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect) {
  if (from == to) return false;
  return std::any_of(variable.affects().begin(), variable.affects().end(), [&](const v1::Effect& own) {
    return own.resource() == effect.resource() && (own.direction() == effect.direction()) == (to > from);
  });
}

bool Serves(const v1::Bundle& bundle, const v1::Change& change, const v1::Finding& finding) {
  for (const v1::Variable& variable : bundle.variables()) {
    if (variable.name() != change.variable()) continue;
    return std::any_of(finding.wants().begin(), finding.wants().end(),
                       [&](const v1::Effect& wanted) { return Gives(variable, change.from(), change.to(), wanted); });
  }
  return false;
}

}  // namespace pawl
