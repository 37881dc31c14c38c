#pragma once

#include <optional>

#include "orchestrator/engine/search/chooser.h"

namespace pawl {

// The next untried neighbour of the best variant: nearest values first, upwards before downwards, variables in the
// bundle's order.
class NeighbourChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override;
};

}  // namespace pawl
