#pragma once

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/search/ranking.h"
#include "orchestrator/engine/search/rule_score.h"
#include "profiles/diagnosis.h"

namespace pawl {

struct TreeSettings {
  RuleSettings rules;
  RankingSettings ranking;
  double min_joining_score = 0.002;  // log speedup that a change needs to be tried in parallel with others in a round
  double min_discount = 0.3;         // of a change for more blocks (see Hindsight), to be chosen before all others
};

// Chooses the change with the highest score: the sum of the rules' term (from findings of the best variant's evidence),
// the model's term (from the campaign's own measurements) and the patterns' term (from earlier campaigns). While the
// grid does not fill the GPU, a change that serves that finding comes before all others, unless measurements contradict
// it. A change of an earlier kept variant is chosen if it scores higher than all changes of the best one. Holds no
// state: the same campaign gives the same choice.
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
