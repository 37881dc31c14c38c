// `pawl verify`: a stored iteration, built and measured again.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/interrupt.h"
#include "cli/follow/verification.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"

namespace pawl {
namespace {

struct VerifyFlags {
  ConnectionFlags connection;
  std::string campaign, iteration;
  WorkerFlags worker;
  bool json = false;
};

absl::StatusOr<int> Verify(const VerifyFlags& flags, std::string iteration, Connection& connection) {
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(flags.campaign); });
  if (!campaign.ok()) return campaign.status();
  if (iteration.empty()) {
    if (!campaign->has_best()) {
      return absl::FailedPreconditionError(
          absl::StrCat(flags.campaign, " has no kept iteration yet: name an iteration"));
    }
    iteration = absl::StrCat(flags.campaign, "/iterations/", campaign->best());
  }
  VerificationRun run(connection, flags.worker, EventPrinter::For(stderr));
  v1::VerifyIterationRequest request;
  request.set_name(iteration);
  absl::StatusOr<v1::Verification> verification = run.Run(*campaign, request);
  if (Interrupted()) return kInterrupted;
  if (!verification.ok() && run.no_worker()) {
    Fail("verify", verification.status());
    return kNoWorker;
  }
  if (!verification.ok()) return verification.status();
  if (flags.json) {
    PrintJsonLine(*verification, /*every_field=*/true);
  } else {
    std::fputs(VerificationText(*verification, run.replayed()).c_str(), stdout);
  }
  return verification->agrees() ? kDone : kFailed;
}

int Verify(const VerifyFlags& flags) {
  std::string iteration;
  if (!flags.iteration.empty()) {
    absl::StatusOr<std::string> name = ReadIterationName(flags.campaign, flags.iteration);
    if (!name.ok()) {
      Fail("verify", name.status());
      return kWrongUsage;
    }
    iteration = *name;
  }
  NoteInterrupts();
  return WithConnection("verify", flags.connection, Need::kCampaigns,
                        [&](Connection& connection) { return Verify(flags, iteration, connection); });
}

}  // namespace

void AddVerify(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand("verify", "Build and measure an iteration again and compare");
  command->group(kRunning)->footer(
      "Example: pawl verify 7 12\n"
      "Uses a registered worker, or starts one if there is none. Exit code: 0 within 10 % of the stored time, 1 not, 4 "
      "no worker can run it. A replay compares recorded times and measures nothing.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("ITERATION", flags->iteration, "Iteration: 12 or campaigns/7/iterations/12 (default: the best)");
  AddWorkerFlags(*command, &flags->worker);
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Verify(*flags); });
}

}  // namespace pawl
