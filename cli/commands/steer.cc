// `pawl pause`, `pawl resume` and `pawl cancel`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

struct SteerFlags {
  ConnectionFlags connection;
  std::string campaign, reason;
  bool json = false;
};

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

// Asks the orchestrator for the new state and answers the campaign as it is then.
using StateRequest = std::function<absl::StatusOr<v1::Campaign>(Connection&, const SteerFlags&)>;

void AddSteering(CLI::App& app, int* exit_code, const std::string& name, const std::string& help,
                 const std::string& example, bool with_reason, StateRequest ask) {
  auto flags = std::make_shared<SteerFlags>();
  CLI::App* command = app.add_subcommand(name, help);
  command->group(kSteering)->footer("Example: " + example);
  AddCampaign(*command, &flags->campaign);
  if (with_reason) command->add_option("--reason", flags->reason, "Reason, recorded with the event");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code, name, ask] {
    *exit_code = WithConnection(name, flags->connection, Need::kCampaigns, [&](Connection& connection) {
      return PrintState(ask(connection, *flags), flags->json);
    });
  });
}

template <typename Message>
Message RequestOf(const SteerFlags& flags) {
  Message request;
  request.set_name(flags.campaign);
  request.set_reason(flags.reason);
  request.set_author(Author());
  return request;
}

}  // namespace

// Pausing or cancelling twice is the same as once, so a lost reply is retried; resuming is not.

void AddPause(CLI::App& app, int* exit_code) {
  AddSteering(app, exit_code, "pause", "Pause a campaign; trials that run are finished",
              "pawl pause 7 --reason \"the GPU is needed\"", /*with_reason=*/true,
              [](Connection& connection, const SteerFlags& flags) {
                const auto request = RequestOf<v1::PauseCampaignRequest>(flags);
                return connection.Ask([&](CampaignClient& client) { return client.Pause(request); });
              });
}

void AddCancel(CLI::App& app, int* exit_code) {
  AddSteering(app, exit_code, "cancel", "Cancel a campaign; its history is kept",
              "pawl cancel 7 --reason \"wrong size\"",
              /*with_reason=*/true, [](Connection& connection, const SteerFlags& flags) {
                const auto request = RequestOf<v1::CancelCampaignRequest>(flags);
                return connection.Ask([&](CampaignClient& client) { return client.Cancel(request); });
              });
}

void AddResume(CLI::App& app, int* exit_code) {
  AddSteering(app, exit_code, "resume", "Continue a paused campaign", "pawl resume 7", /*with_reason=*/false,
              [](Connection& connection, const SteerFlags& flags) {
                v1::ResumeCampaignRequest request;
                request.set_name(flags.campaign);
                request.set_author(Author());
                return connection.client().Resume(request);
              });
}

}  // namespace pawl
