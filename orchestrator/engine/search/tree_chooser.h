#pragma once

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/search/ranking.h"
#include "orchestrator/engine/search/rule_voice.h"
#include "profiles/diagnosis.h"

namespace pawl {

struct TreeSettings {
  RuleSettings rules;
  RankingSettings ranking;
  double worth_joining = 0.002;  // log speedup that a change must promise to be tried beside others in a round
  double worth_forcing = 0.3;    // what measurements must have left of a change for more blocks, to come before others
};

// Findings of the best variant's evidence lead to the single changes that serve them; a model of the campaign's own
// measurements and the campaign's patterns speak in the same ranking, whose first is chosen. While the grid
// does not fill the GPU, a change that serves that comes before all others, unless measurements have spoken against it.
// Where nothing around the best variant promises more, the ranking branches from an earlier kept one. Holds no state:
// the same campaign gives the same choice.
class TreeChooser : public Chooser {
 public:
  // `tree` must outlive it.
  explicit TreeChooser(const DecisionTree& tree = DecisionTree::Default(), const TreeSettings& settings = {});

  std::optional<Choice> Next(const CampaignState& campaign) const override;

 private:
  const DecisionTree& tree_;
  const TreeSettings settings_;
};

}  // namespace pawl
