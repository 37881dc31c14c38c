#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/engine/search/pattern_voice.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

struct RuleSettings {
  double gain = 0.5;         // log speedup that the worst finding promises
  double later_phase = 0.8;  // of that for each phase after parallelism
  double next_want = 0.8;    // of that for each further resource that a rule wants
  double misfit = 0.15;      // of that lost for each doubling by which a step is off the one asked for, or each place
  double added_launch =
      0.9;              // of that left where a change adds a launch to the call: it costs its own microsecond or two
  double failed = 0.6;  // of a rule's weight left after its prediction failed
  double kept_otherwise = 0.85;  // likewise, but the change was kept: faster, for another reason or by another factor
  double came_true = 1.2;        // times its weight after its prediction came true
};

// What the findings of the best variant's evidence say of single changes. Pure.
class RuleVoice {
 public:
  // What speaks for a change, most of all.
  struct Opinion {
    double log_gain = 0;                  // expected
    const v1::Finding* served = nullptr;  // null: none
    v1::Effect effect;                    // that it wants and the change gives
    double ratio = 0;                     // how many times more of it the change gives; 0: the values do not say
    double pattern_gain = 0;              // what patterns say of that
  };

  RuleVoice(std::vector<v1::Finding> findings, std::map<std::string, double> weights, const RuleSettings& settings,
            PatternVoice patterns);

  const std::vector<v1::Finding>& findings() const { return findings_; }
  double Weight(const std::string& rule) const;
  Opinion Of(const v1::Variable& variable, int32_t from, int32_t to) const;
  // The finding that the grid does not fill the GPU: while there is a change that serves it, no other may be chosen.
  // Null: the grid fills it, or nobody knows.
  const v1::Finding* GridTooSmall() const;

 private:
  const std::vector<v1::Finding> findings_;
  const std::map<std::string, double> weights_;
  const RuleSettings settings_;
  const PatternVoice patterns_;
};

// What each rule's word is worth after what became of the changes it asked for; a rule that is not there: 1.
std::map<std::string, double> RuleWeights(const CampaignState& campaign, const RuleSettings& settings);

// Turning the variable so gives what the effect names: more or less of a resource.
bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect);

// The change gives something that the finding wants.
bool Serves(const v1::Bundle& bundle, const v1::Change& change, const v1::Finding& finding);

}  // namespace pawl
