// `pawl best`: the fastest variant that was kept, and how to build it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/requests.h"
#include "cli/output/winner_folder.h"
#include "cli/text/campaign_text.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "report/sentences.h"

namespace pawl {
namespace {

struct BestFlags {
  ConnectionFlags connection;
  std::string campaign;
  std::string output;
  bool json = false;
};

void Print(const v1::BestVariant& best, const v1::Campaign& campaign, const std::vector<v1::Iteration>& path) {
  const v1::Iteration& iteration = best.iteration();
  std::printf("%s of %s on %s\n", iteration.name().c_str(), best.bundle().name().c_str(), iteration.device().c_str());
  std::printf("variant  %s\n", ValuesText(iteration).c_str());
  std::printf("time     %s", TimeText(iteration.time_us()).c_str());
  if (iteration.warm_us() > 0) std::printf("; warm %s", TimeText(iteration.warm_us()).c_str());
  if (iteration.cold_us() > 0) std::printf(", cold %s", TimeText(iteration.cold_us()).c_str());
  std::printf("\nspeedup  %s over the start, %s over the baseline\n",
              SpeedupText(iteration.speedup_over_start()).c_str(), OverBaselineText(campaign).c_str());
  if (!iteration.build().empty()) std::printf("build    %s\n", iteration.build().c_str());
  if (!iteration.patched_source_hash().empty()) {
    std::printf("source   edited: blob %s\n", iteration.patched_source_hash().c_str());
  }
  std::printf("kept changes:\n%s", PathText(path).c_str());
}

absl::Status TakeAway(const BestFlags& flags, const v1::BestVariant& best, const v1::Campaign& campaign,
                      const std::vector<v1::Iteration>& path, Connection& connection) {
  std::string source = best.bundle().source().text();
  if (const std::string& hash = best.iteration().patched_source_hash(); !hash.empty()) {
    absl::StatusOr<v1::GetBlobResponse> blob =
        connection.Ask([&](CampaignClient& client) { return client.GetBlob(hash); });
    if (!blob.ok()) return blob.status();
    source = blob->content();
  }
  absl::StatusOr<std::vector<WinnerFile>> files = WinnerFiles(best, campaign, source, path);
  if (!files.ok()) return files.status();
  return WriteWinner(*files, flags.output);
}

absl::StatusOr<int> Best(const BestFlags& flags, Connection& connection) {
  absl::StatusOr<v1::BestVariant> best =
      connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(flags.campaign); });
  if (!best.ok()) return best.status();
  if (flags.json) {
    PrintJsonLine(*best);
    return kDone;
  }
  absl::StatusOr<std::vector<v1::Iteration>> path = KeptPath(connection, flags.campaign, best->iteration().number());
  if (!path.ok()) return path.status();
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(flags.campaign); });
  if (!campaign.ok()) return campaign.status();
  Print(*best, *campaign, *path);
  if (flags.output.empty()) return kDone;
  if (absl::Status status = TakeAway(flags, *best, *campaign, *path, connection); !status.ok()) return status;
  std::printf("written  %s: source, build.sh, launch.cc, evidence.json, README.md\n", flags.output.c_str());
  return kDone;
}

}  // namespace

void AddBest(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<BestFlags>();
  CLI::App* command = app.add_subcommand("best", "Show the fastest kept variant: values, times, build command");
  command->group(kLooking)->footer("Example: pawl best 7 --output winner");
  AddCampaign(*command, &flags->campaign);
  command
      ->add_option(
          "--output", flags->output,
          "Also write it to this folder: source with the variables fixed, build script, launch example, evidence")
      ->type_name("FOLDER");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("best", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Best(*flags, connection); });
  });
}

}  // namespace pawl
