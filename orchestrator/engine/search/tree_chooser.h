#pragma once

#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/search/ranking.h"
#include "orchestrator/engine/search/rule_prior.h"
#include "profiles/diagnosis.h"

namespace pawl {

struct TreeSettings {
  RulePriorSettings rules;
  RankingSettings ranking;
};

// Chooses the change with the largest expected improvement over the best variant for each second of its cost, by one
// posterior: of the campaign's measurements, with what rules say about the best variant's evidence and what earlier
// campaigns taught as its prior. While the grid does not fill the GPU, changes that add parallelism come first, as long
// as the posterior expects a gain from them. Holds no state: the same campaign gives the same choice.
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
