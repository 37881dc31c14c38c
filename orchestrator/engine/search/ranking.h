#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "orchestrator/engine/search/model.h"
#include "orchestrator/engine/search/rule_score.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct RankingSettings {
  ModelSettings model;
  double clip_depth = 1;  // log speed below the best: samples slower than this are clipped before fitting
  // Factors of the rules' term.
  double retried = 0.2;      // for each time that the value was tried under another parent and not kept,
  double left_behind = 0.6;  // or a kept change moved away from it and it is the start's value
  double same_way = 0.5;     // for each change of the variable in the same direction that this parent did not keep
  double after_cause = 0.6;  // until the change that caused the finding is tested without (see RankedChange::after)
  double unlocked = 0.5;     // of a forbidden change: added to the changes after which constraints allow it
  // The model's term.
  double returning = 0.5;  // factor for a value that a kept change moved away from
  double momentum = 0.05;  // log speedup added for continuing the change that was just kept
  double sd_growth = 0.1;  // share by which the standard deviation grows with each iteration since the best variant
  double max_sd_growth = 5;
  int parents = 24;       // kept variants, the fastest ones, whose changes are ranked
  int examined = 24;      // changes of parents other than the best for which the full posterior is computed
  int lookahead = 12;     // changes for which the gain of a second change is added
  int detours_after = 5;  // iterations without a better variant
};

// A single change of a kept variant that was not tried yet. Constraints or the GPU's limits may forbid it.
struct RankedChange {
  int parent = 0;
  v1::Change change;
  v1::Score score;  // in log speedup over the best variant; the sum of its terms ranks it
  RuleScore::Term rule;
  double discount = 1;                // factor of the rule's term by the campaign's measurements (see Hindsight)
  bool takes_back = false;            // it undoes a kept change that caused the finding
  std::optional<v1::Change> after;    // a change that undoes the cause of the same finding, and is tested first
  std::optional<v1::Change> unlocks;  // a change that rules ask for and constraints allow only after this one
  bool detour = false;  // a change of the best variant gives the same variant, which is expected to be slower than it
};

double SumOf(const v1::Score& score);

struct TriedChange {
  v1::Change change;
  int iteration = 0;
};

struct Ranking {
  std::vector<RankedChange> changes;      // highest score first
  std::vector<TriedChange> tried_around;  // changes of the best variant whose variants were tried before
};

// Ranks all single changes of the best variant and of earlier kept ones; while iterations are open, those of their
// parent. The rules' and patterns' terms apply to changes of the best variant only, because the evidence is of it. The
// campaign must have a best variant; `rules` must outlive the ranking.
Ranking RankChanges(const CampaignState& campaign, const RuleScore& rules, const RankingSettings& settings);

}  // namespace pawl
