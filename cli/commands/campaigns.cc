// `pawl campaigns`: all of them, newest first.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/text/campaign_text.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

struct CampaignsFlags {
  ConnectionFlags connection;
  int page_size = 0;
  std::string page_token;
  bool json = false;
};

void Print(const v1::ListCampaignsResponse& page) {
  using Align = Table::Align;
  Table table({{"#", Align::kRight},
               {"state"},
               {"tier"},
               {"best", Align::kRight},
               {"baseline", Align::kRight},
               {"kernel", Align::kLeft, 0, /*shrinks_to=*/12},
               {"tried", Align::kRight, /*dispensable=*/1},
               {"kept", Align::kRight, /*dispensable=*/2},
               {"start", Align::kRight, /*dispensable=*/3},
               {"begun", Align::kLeft, /*dispensable=*/4},
               {"device", Align::kLeft, /*dispensable=*/5, /*shrinks_to=*/10}});
  for (const v1::Campaign& campaign : page.campaigns()) {
    table.Add({ShortName(campaign.name()), StateWord(campaign.state()), TierWord(campaign.tier()),
               TimeText(campaign.best_us()), SpeedupText(campaign.speedup_over_baseline()),
               absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal())),
               absl::StrCat(campaign.counts().tried()), absl::StrCat(campaign.counts().kept()),
               SpeedupText(campaign.speedup_over_start()), UtcText(campaign.create_time()), campaign.device()});
  }
  if (!table.empty()) {
    std::fputs(table.Text(TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(), stdout);
  }
}

// Why campaigns that could go on do not, each reason once.
void PrintWaits(const v1::ListCampaignsResponse& page) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const v1::Campaign& campaign : page.campaigns()) {
    if (!IsHeld(campaign)) continue;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == campaign.message(); });
    auto& reason =
        known == reasons.end() ? reasons.emplace_back(campaign.message(), std::vector<std::string>()) : *known;
    reason.second.push_back(ShortName(campaign.name()));
  }
  constexpr size_t kNamed = 10;
  for (auto& [reason, campaigns] : reasons) {
    const size_t more = campaigns.size() > kNamed ? campaigns.size() - kNamed : 0;
    campaigns.resize(campaigns.size() - more);
    std::fprintf(
        stderr, "%s %s: %s\n",
        absl::StrCat(absl::StrJoin(campaigns, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "").c_str(),
        campaigns.size() + more == 1 ? "waits" : "wait", OneLine(reason).c_str());
  }
}

absl::StatusOr<int> ListCampaigns(const CampaignsFlags& flags, Connection& connection) {
  v1::ListCampaignsRequest request;
  request.set_page_size(flags.page_size);
  request.set_page_token(flags.page_token);
  absl::StatusOr<v1::ListCampaignsResponse> page =
      connection.Ask([&](CampaignClient& client) { return client.ListCampaigns(request); });
  if (!page.ok()) return page.status();
  if (flags.json) {
    for (const v1::Campaign& campaign : page->campaigns()) PrintJsonLine(campaign, /*every_field=*/true);
  } else {
    Print(*page);
  }
  std::fflush(stdout);
  if (!flags.json) PrintWaits(*page);
  if (page->campaigns().empty() && flags.page_token.empty()) {
    std::fprintf(stderr, "No campaigns yet: `pawl run BUNDLE` starts one\n");
  }
  if (!page->next_page_token().empty()) {
    const std::string size = flags.page_size > 0 ? absl::StrCat(" --page-size ", flags.page_size) : "";
    std::fprintf(stderr, "more: pawl campaigns%s%s%s --page-token %s\n", flags.json ? " --json" : "", size.c_str(),
                 FlagsText(flags.connection).c_str(), page->next_page_token().c_str());
  }
  return kDone;
}

}  // namespace

void AddCampaigns(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CampaignsFlags>();
  CLI::App* command = app.add_subcommand("campaigns", "List campaigns, newest first");
  command->group(kLooking)->footer("Example: pawl campaigns");
  command->add_option("--page-size", flags->page_size, "Campaigns per page, 1 to 1000 (default: 100)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--page-token", flags->page_token, "Continue after an earlier page");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("campaigns", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return ListCampaigns(*flags, connection); });
  });
}

}  // namespace pawl
