// `pawl situation`: the state of a campaign, for proposing the next change.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "agent/tools/source_text.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/drive/checkout.h"
#include "cli/drive/connected_campaigns.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/situation_text.h"

namespace pawl {
namespace {

struct SituationFlags {
  ConnectionFlags connection;
  std::string campaign;
  std::string checkout;
  bool all = false;
  bool json = false;
};

absl::StatusOr<int> Show(const SituationFlags& flags, Connection& connection) {
  absl::StatusOr<v1::Situation> situation =
      connection.Ask([&](CampaignClient& client) { return client.GetSituation(flags.campaign); });
  if (!situation.ok()) return situation.status();
  const std::shared_ptr<Campaigns> campaigns = CampaignsOf(connection);
  v1::Bundle contract;
  if (!situation->has_best()) {
    absl::StatusOr<v1::Bundle> bundle = BundleOf(*campaigns, situation->campaign());
    if (!bundle.ok()) return bundle.status();
    contract = *std::move(bundle);
  }
  if (!flags.checkout.empty()) {
    const absl::Status written = WriteCheckout(*campaigns, situation->campaign(), flags.checkout);
    if (!written.ok()) return written;
  }
  if (flags.json) {
    PrintJsonLine(*situation);
  } else {
    const std::string text = SituationText(*situation, contract, FlagsText(flags.connection), flags.all, absl::Now(),
                                           ReadingWidth(STDOUT_FILENO));
    std::fputs(text.c_str(), stdout);
  }
  return kDone;
}

}  // namespace

void AddSituation(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<SituationFlags>();
  CLI::App* command = app.add_subcommand("situation", "Show a campaign's state for proposing its next change");
  command->group(kLooking)->footer(
      "Examples: pawl situation 7\n"
      "          pawl situation 7 --checkout old   for an edit: see `pawl help propose`\n"
      "          pawl situation 7 --json | jq -r .source\n"
      "With --json: source, variables and their effects, evidence, findings, all trials with their outcome.");
  AddCampaign(*command, &flags->campaign);
  command->add_flag("--all", flags->all, "List every untried change, not only the highest ranked");
  command
      ->add_option("--checkout", flags->checkout,
                   "Also write the best variant's files to a folder: the source, headers, and the part of kernel.toml "
                   "that an edit may change")
      ->type_name("FOLDER");
  command->add_flag("--json", flags->json, "Print JSON for programs: one object with all fields");
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("situation", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Show(*flags, connection); });
  });
}

}  // namespace pawl
