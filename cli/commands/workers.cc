// `pawl workers`: who measures.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/channel/address.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

struct WorkersFlags {
  ConnectionFlags connection;
  bool all = false;
  bool json = false;
};

void Print(const v1::ListWorkersResponse& reply) {
  using Align = Table::Align;
  Table table({{"worker"},
               {"state"},
               {"trials done", Align::kRight},
               {"faults", Align::kRight},
               {"seen"},
               {"device"},
               {"trials"}});
  for (const v1::Worker& worker : reply.workers()) {
    table.Add({ShortName(worker.name()), WorkerStateWord(worker.state()), absl::StrCat(worker.completed()),
               absl::StrCat(worker.host_faults()), UtcText(worker.last_seen()), worker.device().label(),
               absl::StrJoin(worker.trials(), " ")});
  }
  if (!table.empty()) {
    std::fputs(table.Text(TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(), stdout);
  }
}

absl::StatusOr<int> Workers(const WorkersFlags& flags, Connection& connection) {
  absl::StatusOr<v1::ListWorkersResponse> reply =
      connection.Ask([&](CampaignClient& client) { return client.ListWorkers(flags.all); });
  if (!reply.ok()) return reply.status();
  if (flags.json) {
    for (const v1::Worker& worker : reply->workers()) PrintJsonLine(worker, /*every_field=*/true);
  } else {
    Print(*reply);
  }
  std::fflush(stdout);
  if (reply->workers().empty()) {
    const std::string how =
        absl::StrCat("`pawl-worker --orchestrator ", connection.address(), " --device auto",
                     IsLocal(connection.address()) ? "" : " --tls-ca FILE --token-file FILE", "` starts one");
    std::fprintf(stderr, "No workers: %s\n", connection.own() ? "no orchestrator is running" : how.c_str());
  }
  return kDone;
}

}  // namespace

void AddWorkers(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<WorkersFlags>();
  CLI::App* command = app.add_subcommand("workers", "List workers and their trials");
  command->group(kLooking)->footer("Example: pawl workers --all");
  command->add_flag("--all", flags->all, "Also list workers that are gone");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("workers", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Workers(*flags, connection); });
  });
}

}  // namespace pawl
