#pragma once

#include <string>
#include <vector>

#include "orchestrator/engine/chooser.h"
#include "orchestrator/engine/model.h"
#include "orchestrator/engine/pattern_voice.h"
#include "orchestrator/engine/rule_voice.h"
#include "profiles/diagnosis.h"

namespace pawl {

struct TreeSettings {
  RuleSettings rules;
  ModelSettings model;
  double explore = 0.5;   // standard deviations of the model's doubt that count for a change
  double momentum = 0.05; // log speedup that going on with a change that was just kept is worth
  double branch = 0.05;   // log speedup that leaving the best variant for an earlier one costs
  int parents = 6;        // kept variants around which changes are looked for
  int acquisition = 0;
  double sample = 0.5;
};

// What each voice says of a change, in log speedup over the best variant. Their sum ranks it.
struct Voices {
  double rules = 0;
  double model = 0;
  double patterns = 0;
  double sum() const { return rules + model + patterns; }
};

// A single change of a kept variant, not tried yet.
struct RankedChange {
  int parent = 0;
  v1::Change change;
  Point point;
  Voices voices;
  RuleVoice::Opinion opinion;
};

// DESIGN: findings of the best variant's evidence, in phase order, lead to the single changes that serve them; a model of
// the campaign's own measurements and the patterns of earlier campaigns speak in the same ranking. While the grid does
// not fill the GPU, changes that add parallelism come before all others. Where nothing better is left around the best
// variant, the ranking goes on around earlier kept ones. Stateless: the same campaign gives the same choice.
class TreeChooser : public Chooser {
 public:
  explicit TreeChooser(const DecisionTree& tree = DecisionTree::Default(), TreeSettings settings = {},
                       PatternVoice patterns = {});

  std::optional<Choice> Next(const CampaignState& campaign) const override;

 private:
  const DecisionTree& tree_;
  const TreeSettings settings_;
  const PatternVoice patterns_;
};

}  // namespace pawl
