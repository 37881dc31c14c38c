// `pawl submit`: a campaign for an orchestrator that runs already.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/connect/flags.h"
#include "cli/connect/requests.h"
#include "cli/follow/watching.h"
#include "cli/text/campaign_text.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "kernels/bundle_message.h"
#include "kernels/limits.h"

namespace pawl {
namespace {

struct SubmitFlags {
  ConnectionFlags connection;
  std::string bundle;
  SpecFlags spec;
  std::string gpu;
  int priority = 0;
  bool wait = false;
  bool json = false;
};

// Workers come and go: longer than one takes to start again.
constexpr absl::Duration kPatience = absl::Seconds(60);

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

int Submit(const SubmitFlags& flags) {
  absl::StatusOr<v1::Bundle> bundle = LoadBundle(flags.bundle);
  if (!bundle.ok()) return Fail("submit", bundle.status());
  absl::StatusOr<v1::CampaignSpec> spec = MakeSpec(flags.spec, *bundle);
  if (!spec.ok()) {
    Fail("submit", spec.status());
    return kWrongUsage;
  }
  spec->set_gpu(flags.gpu);
  spec->set_priority(flags.priority);
  return WithConnection("submit", flags.connection, Need::kRunning, [&](Connection& connection) -> absl::StatusOr<int> {
    absl::StatusOr<v1::Campaign> campaign = SubmitBundle(connection, *bundle, *spec, Need::kRunning, Say);
    if (!campaign.ok()) return campaign.status();
    if (flags.json && !flags.wait) PrintJsonLine(*campaign, /*every_field=*/true);
    if (!flags.json) std::printf("%s\n", campaign->name().c_str());
    std::fflush(stdout);
    if (IsHeld(*campaign)) Say(absl::StrCat("It waits: ", campaign->message()));
    if (IsContractAlone(*bundle)) Say(absl::StrCat(bundle->name(), " is ", kContractAlone, ": pawl propose"));
    if (!flags.wait) return kDone;
    WatchingOptions watching;
    watching.flags = FlagsText(flags.connection);
    watching.printer = EventPrinter::For(stderr);
    watching.summary_json = flags.json;
    watching.worker_patience = kPatience;
    return WatchToTheEnd(connection, campaign->name(), watching);
  });
}

}  // namespace

void AddSubmit(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<SubmitFlags>();
  CLI::App* command = app.add_subcommand("submit", "Submit a bundle to a running orchestrator");
  command->group(kRunning)->footer(
      "Example: pawl submit attention --iterations 50 --orchestrator 127.0.0.1:7465\n"
      "Prints the campaign's name.");
  command
      ->add_option("BUNDLE", flags->bundle, "Folder of the kernel bundle, or the name of a bundle that ships with Pawl")
      ->required();
  AddSpecFlags(*command, &flags->spec);
  command->add_option("--gpu", flags->gpu, "Run only on GPUs whose name contains this, such as H200");
  command
      ->add_option("--priority", flags->priority,
                   "Of your campaigns, those of a higher priority get workers first; shares of other authors don't "
                   "change (-100 to 100, default: 0)")
      ->type_name("N")
      ->check(CLI::Range(-kMaxPriority, kMaxPriority));
  command->add_flag("--wait", flags->wait,
                    "Wait until the campaign ends; exit codes as for `pawl run`, 4 if no worker can run it for 60 s");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Submit(*flags); });
}

}  // namespace pawl
