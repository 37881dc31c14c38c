#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct RankingSettings;

// What a campaign's measurements say of changes of its best variant that rules ask for. The campaign must have a best
// variant, and outlive this with the settings.
class Hindsight {
 public:
  Hindsight(const CampaignState& campaign, const RankingSettings& settings);

  // A kept change left this value, both by their places.
  bool WasLeft(size_t variable, size_t place) const { return left_[variable][place]; }

  // Turning the variable there takes back the change that led the best variant's from there, for the sake of a side
  // effect: that was made for something else. Not where the variable went to and fro before.
  bool TakesBack(const std::string& variable, int32_t to, const v1::Effect& effect) const;

  // Of what a rule promises for turning the variable there; 1: nothing was measured that speaks against it.
  double Left(const v1::Variable& variable, int32_t to, bool takes_back) const;

 private:
  const CampaignState& campaign_;
  const v1::Iteration& best_;
  const RankingSettings& settings_;
  std::vector<std::vector<bool>> left_;
};

}  // namespace pawl
