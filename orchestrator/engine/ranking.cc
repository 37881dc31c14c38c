#include "orchestrator/engine/ranking.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_format.h"
#include "orchestrator/engine/seeded_random.h"

namespace pawl {
namespace {

constexpr double kTie = 1e-6;  // far below any gain: decides between changes of which nothing is known

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

// The change goes on where the last iteration, which made the best variant, went.
bool GoesOn(const CampaignState& campaign, const RankedChange& ranked) {
  const v1::Iteration& last = campaign.iterations().back();
  if (last.number() != campaign.best()->number() || ranked.parent != last.number()) return false;
  const v1::Change& kept = last.change();
  return kept.variable() == ranked.change.variable() &&
         (kept.to() > kept.from()) == (ranked.change.to() > ranked.change.from());
}

// Every single change of the parent; `visit` gets each with its variable.
template <typename Visit>
void VisitChanges(const v1::Bundle& bundle, const v1::Iteration& parent, const Visit& visit) {
  RankedChange ranked;
  ranked.parent = parent.number();
  ranked.point = PointOf(bundle, parent.variant());
  for (int i = 0; i < bundle.variables_size(); ++i) {
    const v1::Variable& variable = bundle.variables(i);
    uint16_t& place = ranked.point[static_cast<size_t>(i)];
    const uint16_t own = place;
    ranked.change.set_variable(variable.name());
    ranked.change.set_from(parent.variant().at(variable.name()));
    for (place = 0; place < variable.values_size(); ++place) {
      if (place == own) continue;
      ranked.change.set_to(variable.values(place));
      visit(variable, ranked);
    }
    place = own;
  }
}

}  // namespace

std::string VoicesText(const Voices& voices) {
  return absl::StrFormat("%+.3f = rules %+.3f, model %+.3f, patterns %+.3f", voices.sum(), voices.rules, voices.model,
                         voices.patterns);
}

Ranking RankChanges(const CampaignState& campaign, const RuleVoice& rules, const RankingSettings& settings) {
  const v1::Bundle& bundle = campaign.bundle();
  const v1::Iteration& best = *campaign.best();
  Ranking ranking;
  std::vector<SpeedModel::Sample> samples = Samples(campaign);
  for (size_t i = 0; i < samples.size(); ++i) ranking.tried[samples[i].point] = campaign.iterations()[i].number();
  for (const auto& [trial, open] : campaign.open_trials()) {
    ranking.tried[PointOf(bundle, open.planned.variant().values())] = open.planned.iteration();
  }
  const SpeedModel model(std::move(samples), settings.model);
  const double best_log = std::log(best.speedup_over_start());
  SeededRandom random(campaign.summary().name(), static_cast<uint64_t>(campaign.next_iteration()));

  std::set<Point> seen;
  std::vector<std::pair<double, RankedChange>> elsewhere;  // by the model's mean
  for (const v1::Iteration* parent : Parents(campaign, static_cast<size_t>(settings.parents))) {
    VisitChanges(bundle, *parent, [&](const v1::Variable& variable, RankedChange& found) {
      if (ranking.tried.contains(found.point)) {
        if (parent == &best) ranking.tried_around.push_back(found);
        return;
      }
      if (!seen.insert(found.point).second) return;
      if (parent != &best) {
        elsewhere.emplace_back(model.Mean(found.point), found);
        return;
      }
      RankedChange ranked = found;
      ranked.opinion = rules.Of(variable, ranked.change.from(), ranked.change.to());
      ranked.voices.rules = ranked.opinion.log_gain;
      ranked.voices.patterns = ranked.opinion.pattern_gain;
      ranked.voices.model = model.ExpectedImprovement(ranked.point, best_log) + kTie * random.Uniform();
      if (GoesOn(campaign, ranked)) ranked.voices.model += settings.momentum;
      ranking.changes.push_back(std::move(ranked));
    });
  }
  std::stable_sort(elsewhere.begin(), elsewhere.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < elsewhere.size(); ++i) {
    RankedChange& ranked = elsewhere[i].second;
    if (i < static_cast<size_t>(settings.examined)) {
      ranked.voices.model = model.ExpectedImprovement(ranked.point, best_log) + kTie * random.Uniform();
    }
    ranking.changes.push_back(std::move(ranked));
  }
  std::stable_sort(ranking.changes.begin(), ranking.changes.end(),
                   [](const RankedChange& a, const RankedChange& b) { return a.voices.sum() > b.voices.sum(); });
  return ranking;
}

}  // namespace pawl
