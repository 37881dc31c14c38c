#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/engine/search/pattern_score.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

struct RuleSettings {
  double gain = 0.5;  // log speedup that a rule predicts for a finding of severity 1
  // Factors of that prediction.
  double later_phase = 0.8;   // for each phase after parallelism
  double next_want = 0.8;     // for each resource that the rule lists before the one the change gives
  double misfit = 0.15;       // share lost for each doubling (or place) by which a step misses the one asked for
  double added_launch = 0.9;  // for a change that adds a launch to the call, which costs a microsecond or two
  // Factors of a rule's weight, by the outcome of its predictions.
  double failed = 0.6;
  double kept_otherwise = 0.85;  // the prediction failed, but the change was kept
  double came_true = 1.2;
};

// The rules' term of a change's score: a prior from the findings of the best variant's evidence. Pure.
class RuleScore {
 public:
  // Of the finding that predicts the largest gain for the change.
  struct Term {
    double log_gain = 0;                  // predicted log speedup
    const v1::Finding* served = nullptr;  // null: no finding asks for the change
    v1::Effect effect;                    // that the finding wants and the change gives
    double ratio = 0;                     // by which factor the change increases the resource; 0: unknown
    double pattern_gain = 0;              // the patterns' term for that finding and effect
  };

  RuleScore(std::vector<v1::Finding> findings, std::map<std::string, double> weights, const RuleSettings& settings,
            PatternScore patterns);

  const std::vector<v1::Finding>& findings() const { return findings_; }
  double Weight(const std::string& rule) const;
  Term Of(const v1::Variable& variable, int32_t from, int32_t to) const;
  // The finding that the grid does not fill the GPU: while a change serves it, no other may be chosen. Null: the grid
  // fills the GPU, or the evidence does not say.
  const v1::Finding* GridTooSmall() const;

 private:
  const std::vector<v1::Finding> findings_;
  const std::map<std::string, double> weights_;
  const RuleSettings settings_;
  const PatternScore patterns_;
};

// Weight of each rule after the outcomes of the changes it asked for in this campaign; a rule that is missing has 1.
std::map<std::string, double> RuleWeights(const CampaignState& campaign, const RuleSettings& settings);

// Whether the change of the variable has this effect: more or less of a resource.
bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect);

// The change gives something that the finding wants.
bool Serves(const v1::Bundle& bundle, const v1::Change& change, const v1::Finding& finding);

}  // namespace pawl
