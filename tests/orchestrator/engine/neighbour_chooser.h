#pragma once

#include <optional>

#include "orchestrator/engine/search/chooser.h"

namespace pawl {

// The next untried neighbour of a measured variant: nearest values first, upwards before downwards, variables in the
// bundle's order.
std::optional<Choice> NextNeighbour(const CampaignState& campaign, const v1::Iteration& parent);

// That of the best variant.
class NeighbourChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override;
};

}  // namespace pawl
