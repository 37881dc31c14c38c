// `pawl pause`: no more trials until `pawl resume`.
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

void AddPause(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("pause", "Lease no more of a campaign's trials; what is leased still counts");
  command->group(kSteering)->footer("Example: pawl pause 7 --reason \"the GPU is needed\"");
  AddCampaign(*command, &flags->campaign);
  command->add_option("--reason", flags->reason, "Recorded with it");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("pause", flags->connection, Need::kCampaigns, [&](Connection& connection) {
      v1::PauseCampaignRequest request;
      request.set_name(flags->campaign);
      request.set_reason(flags->reason);
      request.set_author(Author());
      // Twice is as good as once.
      return PrintState(connection.Ask([&](CampaignClient& client) { return client.Pause(request); }), flags->json);
    });
  });
}

}  // namespace pawl
