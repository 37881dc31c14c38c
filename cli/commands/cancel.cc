// `pawl cancel`: the end of a campaign.
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/connect/author.h"
#include "cli/connect/flags.h"
#include "cli/text/state_line.h"

namespace pawl {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string campaign, reason;
  bool json = false;
};

}  // namespace

void AddCancel(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("cancel", "End a campaign; what was found stays");
  command->group(kSteering)->footer("Example: pawl cancel 7 --reason \"wrong size\"");
  AddCampaign(*command, &flags->campaign);
  command->add_option("--reason", flags->reason, "Recorded with it");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("cancel", flags->connection, Need::kCampaigns, [&](Connection& connection) {
      v1::CancelCampaignRequest request;
      request.set_name(flags->campaign);
      request.set_reason(flags->reason);
      request.set_author(Author());
      // Twice is as good as once.
      return PrintState(connection.Ask([&](CampaignClient& client) { return client.Cancel(request); }), flags->json);
    });
  });
}

}  // namespace pawl
