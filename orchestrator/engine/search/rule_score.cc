#include "orchestrator/engine/search/rule_score.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr double kMinWeight = 0.05, kMaxWeight = 2;

// The resource is about proportional to the value.
bool IsProportional(v1::Resource resource) {
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

// By which factor the wanted resource changes; 0: unknown. Removing a launch closes the whole deficit.
double Ratio(v1::Resource resource, double deficit, int32_t from, int32_t to) {
  if (resource == v1::RESOURCE_LAUNCHES && deficit > 0) return 1 / deficit;
  if (!IsProportional(resource) || from <= 0 || to <= 0) return 0;
  return to > from ? static_cast<double>(to) / from : static_cast<double>(from) / to;
}

int PlacesApart(const v1::Variable& variable, int32_t from, int32_t to) {
  const auto& values = variable.values();
  const auto a = std::find(values.begin(), values.end(), from), b = std::find(values.begin(), values.end(), to);
  return static_cast<int>(std::abs(a - b));
}

// Doublings between the step and the one that the deficit asks for. Without a ratio: places beyond the neighbour.
double Misfit(const v1::Variable& variable, int32_t from, int32_t to, double ratio, double deficit) {
  if (ratio <= 0 || deficit <= 0) return PlacesApart(variable, from, to) - 1;
  return std::abs(std::log2(ratio) + std::log2(deficit));
}

}  // namespace

RuleScore::RuleScore(std::vector<v1::Finding> findings, std::map<std::string, double> weights,
                     const RuleSettings& settings, PatternScore patterns)
    : findings_(std::move(findings)),
      weights_(std::move(weights)),
      settings_(settings),
      patterns_(std::move(patterns)) {}

double RuleScore::Weight(const std::string& rule) const {
  const auto weight = weights_.find(rule);
  return weight == weights_.end() ? 1 : weight->second;
}

RuleScore::Term RuleScore::Of(const v1::Variable& variable, int32_t from, int32_t to) const {
  Term term;
  v1::Effect launches;
  launches.set_resource(v1::RESOURCE_LAUNCHES);
  launches.set_direction(v1::DIRECTION_MORE);
  const double launch_factor = Gives(variable, from, to, launches) ? settings_.added_launch : 1;
  for (const v1::Finding& finding : findings_) {
    const int phase = finding.phase() - v1::PHASE_PARALLELISM;
    double predicted =
        settings_.gain * finding.severity() * Weight(finding.rule()) * std::pow(settings_.later_phase, phase);
    for (const v1::Effect& wanted : finding.wants()) {
      if (Gives(variable, from, to, wanted)) {
        const double ratio = Ratio(wanted.resource(), finding.deficit(), from, to);
        // Relative to the best step in the list: the last value is not penalised if the list ends before the target.
        double smallest = Misfit(variable, from, to, ratio, finding.deficit());
        for (const int32_t value : variable.values()) {
          if (!Gives(variable, from, value, wanted)) continue;
          smallest =
              std::min(smallest, Misfit(variable, from, value, Ratio(wanted.resource(), finding.deficit(), from, value),
                                        finding.deficit()));
        }
        const double misfit = Misfit(variable, from, to, ratio, finding.deficit()) - smallest;
        const double gain = predicted * launch_factor * std::max(0.0, 1 - settings_.misfit * misfit);
        if (gain > term.log_gain) {
          term.log_gain = gain;
          term.served = &finding;
          term.effect = wanted;
          term.ratio = ratio;
        }
      }
      predicted *= settings_.next_want;
    }
  }
  if (patterns_ && term.served != nullptr) {
    const PatternGain gain = patterns_(*term.served, term.effect.resource(), term.effect.direction());
    term.pattern_gain = gain.weight * gain.log_gain;
  }
  return term;
}

const v1::Finding* RuleScore::GridTooSmall() const {
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
      case v1::Prediction::CAME_TRUE:  // a gain too small to keep earns no credit
        weight *= kept ? settings.came_true : settings.failed;
        break;
      case v1::Prediction::FAILED:
        weight *= kept ? settings.kept_otherwise : settings.failed;
        break;
      default:  // unchecked: the verdict decides
        weight *= kept ? settings.came_true : settings.failed;
    }
    weight = std::clamp(weight, kMinWeight, kMaxWeight);
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
