#include "orchestrator/engine/tree_chooser.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/engine/seeded_random.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

// The GPU that evidence is of, by the label of the campaign's device: thresholds may differ by GPU.
v1::GpuInfo GpuOf(const CampaignState& campaign) {
  v1::GpuInfo gpu;
  for (const GpuSpec& known : KnownGpus()) {
    for (const std::string& name : known.names) {
      if (name.size() > gpu.name().size() && absl::StrContains(campaign.summary().device(), name)) gpu.set_name(name);
    }
  }
  return gpu;
}

// Log speed over the start; a failed variant counts as the slowest seen.
std::vector<SpeedModel::Sample> Samples(const CampaignState& campaign) {
  double slowest = 0;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.speedup_over_start() > 0) slowest = std::min(slowest, std::log(iteration.speedup_over_start()));
  }
  std::vector<SpeedModel::Sample> samples;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    const double speedup = iteration.speedup_over_start();
    samples.push_back({PointOf(campaign.bundle(), iteration.variant()), speedup > 0 ? std::log(speedup) : slowest});
  }
  return samples;
}

// The best first.
std::vector<const v1::Iteration*> Parents(const CampaignState& campaign, size_t most) {
  std::vector<const v1::Iteration*> kept;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.verdict() == v1::KEPT && iteration.number() != campaign.best()->number()) kept.push_back(&iteration);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const v1::Iteration* a, const v1::Iteration* b) {
    return a->speedup_over_start() > b->speedup_over_start();
  });
  kept.insert(kept.begin(), campaign.best());
  if (kept.size() > most) kept.resize(most);
  return kept;
}

double Acquire(const SpeedModel::Guess& guess, double best, const TreeSettings& settings, SeededRandom& random) {
  switch (settings.acquisition) {
    case 1:
      return guess.mean + settings.sample * guess.sd * random.Normal() - best;
    case 2: {
      if (guess.sd <= 0) return std::max(0.0, guess.mean - best);
      const double z = (guess.mean - best) / guess.sd;
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      return (guess.mean - best) * 0.5 * std::erfc(-z / std::numbers::sqrt2) + guess.sd * density;
    }
    default:
      return guess.mean + settings.explore * guess.sd - best;
  }
}

std::string ChangeText(const v1::Change& change) {
  return absl::StrFormat("%s %d to %d", change.variable(), change.from(), change.to());
}

std::string VoicesText(const Voices& voices) {
  return absl::StrFormat("%+.3f in log speedup: rules %+.3f, model %+.3f, patterns %+.3f", voices.sum(), voices.rules,
                         voices.model, voices.patterns);
}

v1::Prediction Predict(const RankedChange& ranked, double log_gain) {
  const v1::Finding& finding = *ranked.opinion.served;
  v1::Prediction prediction;
  prediction.set_metric(finding.predicts());
  for (const v1::SeenValue& seen : finding.seen()) {
    if (seen.metric() != finding.predicts()) continue;
    prediction.set_direction(absl::StartsWith(seen.operator_(), "<") ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
  }
  prediction.set_low(std::exp(log_gain / 4));
  // So many times more of a resource can't gain more than so many times.
  prediction.set_high(ranked.opinion.ratio > 1 ? ranked.opinion.ratio : std::exp(4 * log_gain));
  prediction.set_outcome(v1::Prediction::UNCHECKED);
  prediction.set_text(absl::StrFormat(
      "%s%s, and %.2f to %.2f times as fast", finding.predicts(),
      prediction.direction() == v1::DIRECTION_MORE ? " rises" : prediction.direction() == v1::DIRECTION_LESS ? " falls" : " moves",
      prediction.low(), prediction.high()));
  return prediction;
}

}  // namespace

TreeChooser::TreeChooser(const DecisionTree& tree, TreeSettings settings, PatternVoice patterns)
    : tree_(tree), settings_(settings), patterns_(std::move(patterns)) {}

std::optional<Choice> TreeChooser::Next(const CampaignState& campaign) const {
  const v1::Iteration* best = campaign.best();
  if (best == nullptr) return std::nullopt;
  const v1::Bundle& bundle = campaign.bundle();
  const RuleVoice rules(tree_.Diagnose(campaign.best_evidence(), GpuOf(campaign)),
                        RuleWeights(campaign, settings_.rules), settings_.rules, patterns_);
  std::vector<SpeedModel::Sample> samples = Samples(campaign);
  std::set<Point> tried;
  for (const SpeedModel::Sample& sample : samples) tried.insert(sample.point);
  for (const auto& [number, open] : campaign.open_trials()) tried.insert(PointOf(bundle, open.planned.variant().values()));
  const SpeedModel model(std::move(samples), settings_.model);
  const double best_log = std::log(best->speedup_over_start());
  const v1::Iteration& last = campaign.iterations().back();
  SeededRandom random(campaign.summary().name(), static_cast<uint64_t>(campaign.next_iteration()));

  std::vector<RankedChange> ranking;
  std::vector<v1::PassedOver> passed_over;
  for (const v1::Iteration* parent : Parents(campaign, static_cast<size_t>(settings_.parents))) {
    const Point at = PointOf(bundle, parent->variant());
    for (int i = 0; i < bundle.variables_size(); ++i) {
      const v1::Variable& variable = bundle.variables(i);
      const int32_t from = parent->variant().at(variable.name());
      for (int place = 0; place < variable.values_size(); ++place) {
        const int32_t to = variable.values(place);
        if (to == from) continue;
        RankedChange ranked;
        ranked.parent = parent->number();
        ranked.change.set_variable(variable.name());
        ranked.change.set_from(from);
        ranked.change.set_to(to);
        ranked.point = at;
        ranked.point[static_cast<size_t>(i)] = static_cast<uint16_t>(place);
        if (!tried.insert(ranked.point).second) {
          if (parent == best) {
            v1::PassedOver& passed = passed_over.emplace_back();
            *passed.mutable_change() = ranked.change;
            passed.set_reason("was tried before");
          }
          continue;
        }
        if (parent == best) {
          ranked.opinion = rules.Of(variable, from, to);
          ranked.voices.rules = ranked.opinion.log_gain;
          ranked.voices.patterns = ranked.opinion.pattern_gain;
        }
        ranked.voices.model = Acquire(model.Predict(ranked.point), best_log, settings_, random) + 1e-6 * random.Uniform();
        if (parent != best) ranked.voices.model -= settings_.branch;
        if (parent == best && last.number() == best->number() && last.change().variable() == variable.name() &&
            (last.change().to() > last.change().from()) == (to > from)) {
          ranked.voices.model += settings_.momentum;
        }
        ranking.push_back(std::move(ranked));
      }
    }
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const RankedChange& a, const RankedChange& b) {
    return a.voices.sum() > b.voices.sum();
  });

  const v1::Finding* gate = rules.GridTooSmall();
  v1::Effect parallelism;
  parallelism.set_resource(v1::RESOURCE_PARALLELISM);
  parallelism.set_direction(v1::DIRECTION_MORE);
  auto variable_of = [&](const RankedChange& ranked) -> const v1::Variable& {
    return *std::find_if(bundle.variables().begin(), bundle.variables().end(),
                         [&](const v1::Variable& v) { return v.name() == ranked.change.variable(); });
  };
  const RankedChange* chosen = nullptr;
  Choice choice;
  for (const bool gated : {true, false}) {
    if (chosen != nullptr || (gated && gate == nullptr)) continue;
    for (const RankedChange& ranked : ranking) {
      if (gated && (ranked.parent != best->number() ||
                    !Gives(variable_of(ranked), ranked.change.from(), ranked.change.to(), parallelism))) {
        continue;
      }
      std::string why;
      std::optional<v1::Variant> variant = Changed(campaign, VariantOf(*campaign.Find(ranked.parent)), ranked.change, &why);
      if (!variant) {
        if (!gated && ranked.parent == best->number()) {
          v1::PassedOver& passed = passed_over.emplace_back();
          *passed.mutable_change() = ranked.change;
          passed.set_reason(why);
        }
        continue;
      }
      chosen = &ranked;
      choice.variant = *std::move(variant);
      break;
    }
  }
  if (chosen == nullptr) return std::nullopt;
  choice.change = chosen->change;
  choice.parent = chosen->parent;
  choice.author = "pawl";
  if (chosen->opinion.served != nullptr) {
    choice.finding = *chosen->opinion.served;
    choice.prediction = Predict(*chosen, std::max(0.01, chosen->voices.rules));
  }
  choice.passed_over = std::move(passed_over);
  choice.why = VoicesText(chosen->voices);
  return choice;
}

}  // namespace pawl
