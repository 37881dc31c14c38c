#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct RankingSettings;

// What a campaign's measurements say about the changes of its best variant that rules ask for. The campaign must have a
// best variant. The campaign and the settings must outlive this.
class Hindsight {
 public:
  Hindsight(const CampaignState& campaign, const RankingSettings& settings);

  // A kept change moved the variable away from the value at this place of its list.
  bool WasLeft(size_t variable, size_t place) const { return left_[variable][place]; }

  // The change would undo the kept change that moved the variable away from `to`, and that change was made for another
  // resource than `effect`'s. False if the best variant's history changed the variable more than once.
  bool TakesBack(const std::string& variable, int32_t to, const v1::Effect& effect) const;

  // Factor of a rule's prediction for changing the variable to this value; 1: no measurement contradicts it.
  double Discount(const v1::Variable& variable, int32_t to, bool takes_back) const;

 private:
  const CampaignState& campaign_;
  const v1::Iteration& best_;
  const RankingSettings& settings_;
  std::vector<std::vector<bool>> left_;
};

}  // namespace pawl
