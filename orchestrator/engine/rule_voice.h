#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/engine/campaign.h"
#include "orchestrator/engine/pattern_voice.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

struct RuleSettings {
  double gain = 0.5;         // log speedup that the worst finding promises
  double later_phase = 0.8;  // of that for each phase after parallelism
  double next_want = 0.8;    // of that for each further resource that a rule wants
  double misfit = 0.15;       // of that lost for each doubling by which a step is off the one asked for, or each place
  double opposed = 0.5;      // of that lost by a change that takes away what a rule wants
  double failed = 0.6;       // of a rule's weight left after a change it asked for was taken back
  double came_true = 1.2;    // times its weight after one was kept
};

// What the findings of the best variant's evidence say of single changes. Pure.
class RuleVoice {
 public:
  // What speaks for a change, most of all.
  struct Opinion {
    double log_gain = 0;           // expected; below 0: it takes away what a rule wants
    const v1::Finding* served = nullptr;  // null: none
    v1::Effect effect;             // of the served one that the change gives
    double ratio = 0;              // of the new value to the old one, in the direction that is wanted; 0: it does not scale
    double pattern_gain = 0;       // what patterns say of that
  };

  RuleVoice(std::vector<v1::Finding> findings, std::map<std::string, double> weights, const RuleSettings& settings,
            PatternVoice patterns);

  const std::vector<v1::Finding>& findings() const { return findings_; }
  double Weight(const std::string& rule) const;
  Opinion Of(const v1::Variable& variable, int32_t from, int32_t to) const;
  // The grid does not fill the GPU: only what adds parallelism may be chosen while there is such a change. Null: it does.
  const v1::Finding* GridTooSmall() const;

 private:
  const std::vector<v1::Finding> findings_;
  const std::map<std::string, double> weights_;
  const RuleSettings settings_;
  const PatternVoice patterns_;
};

// What each rule's word is worth after what became of the changes it asked for; a rule that is not there: 1.
std::map<std::string, double> RuleWeights(const CampaignState& campaign, const RuleSettings& settings);

// The change gives more (or less) of what the effect names.
bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect);

}  // namespace pawl
