#include "cli/text/campaign_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/words.h"

namespace pawl {

std::string CampaignLine(const v1::Campaign& campaign, int untried) {
  const v1::Budget& budget = campaign.spec().budget();
  const int tried = std::max(0, campaign.iterations() - 1 - untried);  // iteration 0 is the start
  std::vector<std::string> parts;
  parts.push_back(budget.iterations() > 0 ? absl::StrFormat("iteration %d of %d", tried, budget.iterations())
                                          : absl::StrFormat("iteration %d", tried));
  if (campaign.speedup_over_baseline() > 0) {
    parts.push_back(absl::StrCat("best ", SpeedupText(campaign.speedup_over_baseline()), " over the ",
                                 campaign.baseline_us() > 0 ? "baseline" : "start"));
  }
  if (campaign.spec().goal().speedup() > 0) {
    parts.push_back(absl::StrCat("goal ", SpeedupText(campaign.spec().goal().speedup())));
  }
  std::vector<std::string> left;
  if (budget.minutes() > 0) left.push_back(SecondsText(60 * std::max(0.0, budget.minutes() - campaign.minutes())));
  if (budget.dollars() > 0) {
    left.push_back(absl::StrFormat("$%.2f", std::max(0.0, budget.dollars() - campaign.dollars())));
  }
  if (!left.empty()) parts.push_back(absl::StrCat(absl::StrJoin(left, " and "), " left"));
  if (campaign.state() == v1::PAUSED || campaign.state() == v1::WAITING) {
    parts.push_back(
        absl::StrCat(StateWord(campaign.state()), campaign.message().empty() ? "" : ": ", campaign.message()));
  }
  return absl::StrCat(campaign.bundle(), " at ", campaign.spec().goal().size(), ": ", absl::StrJoin(parts, ", "));
}

}  // namespace pawl
