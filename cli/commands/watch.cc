// `pawl watch`: a campaign's events as they happen.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/follow/watching.h"

namespace pawl {
namespace {

struct WatchFlags {
  ConnectionFlags connection;
  std::string campaign;
  int64_t after = 0;
  bool no_progress = false;
  bool json = false;
};

absl::StatusOr<int> Watch(const WatchFlags& flags, Connection& connection) {
  WatchingOptions options;
  options.after_sequence = flags.after;
  options.flags = FlagsText(flags.connection);
  options.printer = EventPrinter::For(stdout);
  options.printer.json = flags.json;
  options.printer.live = options.printer.live && !flags.no_progress;
  options.summary = !flags.json;
  return WatchToTheEnd(connection, flags.campaign, options);
}

}  // namespace

void AddWatch(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand("watch", "Follow a campaign: past and new events");
  command->group(kLooking)->footer(
      "Example: pawl watch 7\n"
      "Ends with the campaign: exit code 0 improved, 3 no improvement, 1 failed or cancelled. Ctrl-C stops watching; "
      "the campaign continues.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("--after", flags->after, "Show only events after this sequence number")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()));
  command->add_flag("--no-progress", flags->no_progress, "Print one line per event, also on a terminal");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("watch", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Watch(*flags, connection); });
  });
}

}  // namespace pawl
