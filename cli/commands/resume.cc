// `pawl resume`: a paused campaign goes on.
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
  std::string campaign;
  bool json = false;
};

}  // namespace

void AddResume(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("resume", "Go on with a paused campaign");
  command->group(kSteering)->footer("Example: pawl resume 7");
  AddCampaign(*command, &flags->campaign);
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("resume", flags->connection, Need::kCampaigns, [&](Connection& connection) {
      v1::ResumeCampaignRequest request;
      request.set_name(flags->campaign);
      request.set_author(Author());
      return PrintState(connection.client().Resume(request), flags->json);
    });
  });
}

}  // namespace pawl
