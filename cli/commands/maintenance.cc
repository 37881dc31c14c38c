// `pawl maintenance`: pauses the whole orchestrator, and resumes it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

struct MaintenanceFlags {
  ConnectionFlags connection;
  std::string what, reason;
  bool json = false;
};

std::string TextOf(const v1::Maintenance& maintenance) {
  if (!maintenance.on()) return "maintenance is off: trials are leased";
  const std::string trials =
      maintenance.leased() == 1 ? "1 trial still runs" : absl::StrCat(maintenance.leased(), " trials still run");
  return absl::StrCat("maintenance is on since ", UtcText(maintenance.since()),
                      maintenance.author().empty() ? "" : absl::StrCat(" by ", maintenance.author()),
                      maintenance.reason().empty() ? "" : absl::StrCat(" (", maintenance.reason(), ")"),
                      ": no trial is leased; ", maintenance.leased() == 0 ? "none runs any more" : trials);
}

absl::StatusOr<int> Maintain(const MaintenanceFlags& flags, Connection& connection) {
  absl::StatusOr<v1::Maintenance> maintenance = connection.Ask([&](CampaignClient& client) {
    if (flags.what == "status") return client.GetMaintenance();
    v1::SetMaintenanceRequest request;
    request.set_on(flags.what == "on");
    request.set_reason(flags.reason);
    request.set_author(Author());
    return client.SetMaintenance(request);
  });
  if (!maintenance.ok()) return maintenance.status();
  if (flags.json) {
    PrintJsonLine(*maintenance, /*every_field=*/true);
  } else {
    std::printf("%s\n", OneLine(TextOf(*maintenance)).c_str());
  }
  return kDone;
}

}  // namespace

void AddMaintenance(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<MaintenanceFlags>();
  CLI::App* command = app.add_subcommand("maintenance", "Stop leasing trials of all campaigns, or resume");
  command->group(kSteering)->footer(
      "Examples: pawl maintenance on --reason \"new driver\"\n"
      "          pawl maintenance off");
  command
      ->add_option("WHAT", flags->what,
                   "on: no more trials are leased, those that run finish; off: everything goes on; status: print it")
      ->required()
      ->check(CLI::IsMember({"on", "off", "status"}));
  command->add_option("--reason", flags->reason, "Reason, shown with every campaign that waits");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("maintenance", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Maintain(*flags, connection); });
  });
}

}  // namespace pawl
