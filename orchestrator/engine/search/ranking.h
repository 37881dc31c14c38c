#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/engine/search/posterior.h"
#include "orchestrator/engine/search/rule_prior.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct RankingSettings {
  PosteriorSettings posterior;
  // Changes rank by the improvement that is expected over a speed above the best one. A search that counts the smallest
  // gain stays at the first peak; one that aims higher prefers what may change much. The aim is above the best by so
  // many times the median standard deviation of the untried changes, so it comes down to the best as they get known.
  double aim = 1;
  size_t parents = 16;   // measured variants whose changes are considered, at most
  size_t examined = 64;  // changes of parents other than the best whose exact posterior is computed, at most
  size_t lookahead = 4;  // changes that constraints forbid, whose gain after another change is computed
  // Whether there is such a variant, where constraints do not say it all. Empty: they do.
  std::function<bool(const v1::Variant&)> exists;
};

// A single change of a measured variant that was not tried yet.
struct RankedChange {
  int parent = 0;
  v1::Change change;
  v1::Score score;                    // absent fields: see `examined`
  Posterior::Normal log_speed;        // over the best variant
  double rate = 0;                    // expected improvement over the aim, for each second of its cost
  bool examined = false;              // it can be tried, and its posterior was computed
  std::string refused;                // why it can't be tried
  RulePrior::Served served;           // of a change of the best variant
  std::optional<v1::Change> unlocks;  // a better change, which constraints allow only after this one
  double same_code = 0;               // probability that it has the machine code of a variant that is known
  int twin = -1;                      // its iteration; -1: that code is tried by a change that comes first
};

struct TriedChange {
  v1::Change change;
  int iteration = 0;
};

struct Ranking {
  std::vector<RankedChange> changes;      // the highest rate first, then those that were not examined
  std::vector<TriedChange> tried_around;  // changes of the best variant whose variants were tried before
};

// Ranks the single changes of measured variants, the best variant's first among equals; while iterations are open,
// those of their parent. The campaign must have a best variant. `rules` is of that variant, and must outlive the
// ranking.
Ranking RankChanges(const CampaignState& campaign, const RulePrior& rules, const RankingSettings& settings);

}  // namespace pawl
