#include "cli/text/state_line.h"

#include <cstdio>
#include <string>

#include "cli/text/exit_code.h"
#include "cli/text/json_line.h"
#include "cli/text/table.h"
#include "cli/text/words.h"

namespace pawl {

absl::StatusOr<int> PrintState(const absl::StatusOr<v1::Campaign>& campaign, bool json) {
  if (!campaign.ok()) return campaign.status();
  if (json) {
    PrintJsonLine(*campaign, /*every_field=*/true);
  } else {
    const std::string why = WhyText(campaign->state(), campaign->message(), campaign->stop_reason());
    std::printf("%s is %s%s\n", campaign->name().c_str(), StateWord(campaign->state()).c_str(), OneLine(why).c_str());
  }
  return kDone;
}

}  // namespace pawl
