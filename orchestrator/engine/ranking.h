#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/engine/campaign.h"
#include "orchestrator/engine/model.h"
#include "orchestrator/engine/point.h"
#include "orchestrator/engine/rule_voice.h"

namespace pawl {

struct RankingSettings {
  ModelSettings model;
  double momentum = 0.05;  // log speedup that going on with a change that was just kept is worth
  int parents = 40;        // kept variants, the best ones, around which changes are looked for
  int examined = 48;       // changes of parents other than the best for which the model says how sure it is
};

// What each voice expects of a change, in log speedup over the best variant. Their sum ranks it.
struct Voices {
  double rules = 0;
  double model = 0;
  double patterns = 0;
  double sum() const { return rules + model + patterns; }
};

// "+0.520 = rules +0.497, model +0.023, patterns +0.000".
std::string VoicesText(const Voices& voices);

// A single change of a kept variant that was not tried yet. Constraints may forbid it.
struct RankedChange {
  int parent = 0;
  v1::Change change;
  Point point;
  Voices voices;
  RuleVoice::Opinion opinion;
};

struct Ranking {
  std::vector<RankedChange> changes;       // the most promising first
  std::map<Point, int> tried;              // iteration by variant
  std::vector<RankedChange> tried_around;  // changes of the best variant that are of no use: tried before
};

// All single changes of the best variant and of earlier kept ones in one ranking. The rules speak of the best variant's
// changes only: the evidence is of it. The campaign must have a best variant; `rules` must outlive the ranking.
Ranking RankChanges(const CampaignState& campaign, const RuleVoice& rules, const RankingSettings& settings);

}  // namespace pawl
