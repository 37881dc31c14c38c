// `pawl show`: one campaign, or one of its iterations with its evidence.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/follow/watching.h"
#include "cli/text/failure.h"
#include "cli/text/iteration_text.h"
#include "cli/text/json_line.h"
#include "cli/text/situation_text.h"

namespace pawl {
namespace {

struct ShowFlags {
  ConnectionFlags connection;
  std::string campaign, iteration;
  bool json = false;
};

absl::StatusOr<int> ShowCampaign(const ShowFlags& flags, Connection& connection) {
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(flags.campaign); });
  if (!campaign.ok()) return campaign.status();
  if (flags.json) {
    PrintJsonLine(*campaign, /*every_field=*/true);
    return kDone;
  }
  if (absl::Status printed = PrintSummary(connection, *campaign); !printed.ok()) return printed;
  if (campaign->state() != v1::RUNNING || !WaitsForProposals(campaign->spec().chooser())) return kDone;
  absl::StatusOr<v1::Situation> situation =
      connection.Ask([&](CampaignClient& client) { return client.GetSituation(flags.campaign); });
  // Before the start is kept there is none, and nothing is waited for.
  if (situation.ok() && situation->waits()) {
    std::printf("%-10s %s\n", "waits", WaitsText(*situation, absl::Now()).c_str());
  }
  return kDone;
}

absl::StatusOr<int> ShowIteration(const ShowFlags& flags, const std::string& name, Connection& connection) {
  absl::StatusOr<v1::Iteration> iteration =
      connection.Ask([&](CampaignClient& client) { return client.GetIteration(name); });
  if (!iteration.ok()) return iteration.status();
  if (flags.json) {
    PrintJsonLine(*iteration);
  } else {
    std::fputs(IterationText(*iteration).c_str(), stdout);
  }
  return kDone;
}

int Show(const ShowFlags& flags) {
  if (flags.iteration.empty()) {
    return WithConnection("show", flags.connection, Need::kCampaigns,
                          [&](Connection& connection) { return ShowCampaign(flags, connection); });
  }
  const absl::StatusOr<std::string> name = ReadIterationName(flags.campaign, flags.iteration);
  if (!name.ok()) {
    Fail("show", name.status());
    return kWrongUsage;
  }
  return WithConnection("show", flags.connection, Need::kCampaigns,
                        [&](Connection& connection) { return ShowIteration(flags, *name, connection); });
}

}  // namespace

void AddShow(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = app.add_subcommand("show", "Show a campaign, or an iteration with its evidence");
  command->group(kLooking)->footer("Examples: pawl show 7\n          pawl show 7 12");
  AddCampaign(*command, &flags->campaign);
  command->add_option("ITERATION", flags->iteration, "Iteration: 12 or campaigns/7/iterations/12");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Show(*flags); });
}

}  // namespace pawl
