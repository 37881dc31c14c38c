#pragma once

#include <map>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// An iteration that was faster than its parent while another was kept gets its verdict by a comparison with that one,
// which comes later. Follows a campaign's events, in their order.
class SettledVerdicts {
 public:
  // The iterations whose verdict is settled by this event, with that verdict.
  std::vector<v1::Iteration> Take(const v1::Event& event);

 private:
  std::map<int, v1::Iteration> waiting_;  // by number
};

}  // namespace pawl
