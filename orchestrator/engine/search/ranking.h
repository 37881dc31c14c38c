#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "orchestrator/engine/search/model.h"
#include "orchestrator/engine/search/rule_voice.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct RankingSettings {
  ModelSettings model;
  double depth = 1;      // log speed below the best: what is slower is no slower to the model, it would blur the rest
  double retried = 0.2;  // of a rule's voice left for each time that the value did not hold under another parent,
  double left_behind = 0.6;  // and where turning away from the start's value did
  double same_way = 0.5;     // likewise, for each change of the variable the same way that this parent did not keep
  double returning = 0.5;    // of the model's voice for turning a variable back to what a kept change left
  double momentum = 0.05;    // log speedup that going on with a change that was just kept is worth
  double after_cause = 0.6;  // of a rule's voice where taking back what brought the finding along is still to be asked
  double unlocked =
      0.5;             // of a rule's voice for a change that constraints forbid, given to those that make it possible
  int parents = 24;    // kept variants, the best ones, around which changes are looked for
  int examined = 24;   // changes of parents other than the best for which the model says how sure it is
  int foreseen = 12;   // changes of which what lies beyond them counts too
  double doubt = 0.1;  // the model's own, growing with each iteration since the best variant was found
  double most_doubt = 5;
  int detours_after = 5;  // iterations without a better variant
};

// A single change of a kept variant that was not tried yet. Constraints or the GPU's limits may forbid it.
struct RankedChange {
  int parent = 0;
  v1::Change change;
  v1::Voices voices;  // in log speedup over the best variant; their sum ranks it
  RuleVoice::Opinion opinion;
  double left = 1;                    // of that opinion, by what measurements said of such changes
  bool takes_back = false;            // a kept change that brought along what the rule wants less of
  std::optional<v1::Change> after;    // such a change that serves the same rule, and is asked first
  std::optional<v1::Change> unlocks;  // a change that rules ask for and constraints allow only after this one
  bool detour = false;                // the best variant could be changed so too: it is expected to be slower than that
};

double SumOf(const v1::Voices& voices);

struct TriedChange {
  v1::Change change;
  int iteration = 0;
};

struct Ranking {
  std::vector<RankedChange> changes;      // the most promising first
  std::vector<TriedChange> tried_around;  // changes of the best variant that are of no use: tried before
};

// All single changes of the best variant and of earlier kept ones in one ranking; while iterations are open, those of
// their parent. The rules speak of the best variant's changes only: the evidence is of it. The campaign must have a
// best variant; `rules` must outlive the ranking.
Ranking RankChanges(const CampaignState& campaign, const RuleVoice& rules, const RankingSettings& settings);

}  // namespace pawl
