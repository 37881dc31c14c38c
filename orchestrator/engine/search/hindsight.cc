#include "orchestrator/engine/search/hindsight.h"

#include "orchestrator/engine/search/ranking.h"

namespace pawl {

Hindsight::Hindsight(const CampaignState& campaign, const RankingSettings& settings)
    : campaign_(campaign), best_(*campaign.best()), settings_(settings) {
  for (const v1::Variable& variable : campaign.BundleOf(campaign.SourceIdOf(best_.number())).variables()) {
    std::vector<bool>& left = left_.emplace_back(static_cast<size_t>(variable.values_size()));
    for (const v1::Iteration& iteration : campaign.iterations()) {
      if (iteration.verdict() != v1::KEPT || iteration.change().variable() != variable.name()) continue;
      for (int place = 0; place < variable.values_size(); ++place) {
        if (variable.values(place) == iteration.change().from()) left[static_cast<size_t>(place)] = true;
      }
    }
  }
}

bool Hindsight::TakesBack(const std::string& variable, int32_t to, const v1::Effect& effect) const {
  const v1::Iteration* made = nullptr;
  for (const v1::Iteration* step = &best_; step->number() > 0; step = campaign_.Find(step->parent())) {
    if (step->change().variable() != variable) continue;
    if (made != nullptr) return false;
    made = step;
  }
  return made != nullptr && made->change().from() == to && made->has_effect() &&
         made->effect().resource() != effect.resource();
}

double Hindsight::Discount(const v1::Variable& variable, int32_t to, bool takes_back) const {
  double discount = 1;
  for (const v1::Iteration& iteration : campaign_.iterations()) {
    const v1::Change& change = iteration.change();
    if (change.variable() != variable.name() || campaign_.IsUntried(iteration.number())) continue;
    if (iteration.verdict() == v1::KEPT) {
      if (change.from() == to && !takes_back) {  // the kept change tested this value against its own
        discount *= to == variable.start() ? settings_.left_behind : settings_.retried;
      }
    } else if (change.to() == to) {
      discount *= settings_.retried;
    } else if (iteration.parent() == best_.number() && iteration.verdict() == v1::REVERTED &&
               (change.to() > change.from()) == (to > change.from())) {
      discount *= settings_.same_way;
    }
  }
  return discount;
}

}  // namespace pawl
