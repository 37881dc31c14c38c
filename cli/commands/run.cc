// `pawl run`: everything in one process tree.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/connect/flags.h"
#include "cli/follow/campaign_run.h"
#include "cli/text/failure.h"
#include "kernels/bundle_message.h"
#include "kernels/space.h"
#include "profiles/goal_sizes.h"
#include "worker/replay/recording.h"
#include "worker/replay/replay_device.h"

namespace pawl {
namespace {

struct RunFlags {
  ConnectionFlags connection;
  std::string bundle;
  SpecFlags spec;
  WorkerFlags worker;
  std::string profiles;
  std::string http;
  bool no_progress = false;
  bool json = false;
};

// Whether a replay has recordings of the bundle at every size of the goal: of --recordings, or of those that ship with
// Pawl. Nothing is checked where the device is, or may be, a GPU and no recordings are named.
absl::Status CheckRecordings(const WorkerFlags& flags, const v1::Bundle& bundle, const v1::Goal& goal) {
  const bool replay = absl::StartsWith(flags.device, "replay") || (flags.device == "auto" && !flags.recordings.empty());
  // The worker reads PAWL_RECORDINGS itself.
  if (!replay || (flags.recordings.empty() && FromEnvironment("PAWL_RECORDINGS"))) return absl::OkStatus();
  ReplayOptions options;
  const std::filesystem::path named =
      flags.recordings.empty() ? FindRecordingsFolder() : std::filesystem::path(flags.recordings);
  if (!named.empty()) options.recordings.push_back(named);
  v1::ErrorDetail detail;
  detail.set_fix("name other recordings with --recordings, or use a GPU (--device cuda:0)");
  const absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open(options);
  if (!device.ok()) {
    return WithDetail(absl::FailedPreconditionError(absl::StrCat("can't replay: ", device.status().message())), detail);
  }
  const auto& recorded = (*device)->device().bundle_hashes();
  std::vector<std::string> missing;
  const std::string hash = BundleHash(bundle);
  for (const SizeWeight& size : GoalSizes(bundle, goal)) {
    const std::string wanted = absl::StrCat(hash, "@", size.size);
    if (std::find(recorded.begin(), recorded.end(), wanted) == recorded.end()) missing.push_back(size.size);
  }
  if (missing.empty()) return absl::OkStatus();
  return WithDetail(absl::FailedPreconditionError(absl::StrCat(named.string(), " has no recording of this ",
                                                               bundle.name(), " at size ", absl::StrJoin(missing, ", "),
                                                               " (pawl record makes one on a GPU)")),
                    detail);
}

int Run(const RunFlags& flags) {
  absl::StatusOr<v1::Bundle> bundle = LoadBundle(flags.bundle);
  if (!bundle.ok()) return Fail("run", bundle.status());
  absl::StatusOr<v1::CampaignSpec> spec = MakeSpec(flags.spec, *bundle);
  if (!spec.ok()) {
    Fail("run", spec.status());
    return kWrongUsage;
  }
  // Before a campaign is there that nobody could run. A contract alone waits for proposals, whatever the device is.
  const absl::Status status =
      IsContractAlone(*bundle) ? absl::OkStatus() : CheckRecordings(flags.worker, *bundle, spec->goal());
  if (!status.ok()) {
    Fail("run", status);
    return kNoWorker;
  }
  absl::StatusOr<Settings> settings = ReadSettings(flags.connection);
  if (!settings.ok()) return Fail("run", settings.status());
  for (const auto& [flag, value] : {std::pair("--profiles", flags.profiles), std::pair("--http", flags.http)}) {
    if (value.empty() || settings->orchestrator.empty()) continue;
    Fail("run", absl::InvalidArgumentError(
                    absl::StrCat(flag, " is for the orchestrator that this command starts, but the one at ",
                                 settings->orchestrator, " was named: give ", flag, " to that pawl-orchestrator")));
    return kWrongUsage;
  }
  if (!flags.profiles.empty()) settings->profiles = std::filesystem::absolute(flags.profiles);
  settings->http = flags.http;
  RunOptions options;
  options.bundle = *std::move(bundle);
  options.contract_alone = IsContractAlone(options.bundle);
  options.spec = *std::move(spec);
  options.worker = flags.worker;
  options.worker.profiles = settings->profiles.string();
  options.settings = *std::move(settings);
  options.flags = FlagsText(flags.connection);
  options.printer = EventPrinter::For(stderr);
  options.printer.quiet = flags.no_progress;
  options.json = flags.json;
  absl::StatusOr<int> exit_code = CampaignRun(std::move(options)).Run();
  return exit_code.ok() ? *exit_code : Fail("run", exit_code.status());
}

}  // namespace

void AddRun(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Run a campaign here: starts an orchestrator and a worker");
  command->group(kRunning)->footer(
      "Examples: pawl run attention --iterations 30\n"
      "          pawl run my_kernel --device cuda:1 --minutes 20\n"
      "Exit code: 0 improved or goal reached, 3 finished without an improvement, 4 no worker can run it, 5 paused (by "
      "a "
      "gate, or because the bundle has no variables and waits for proposals), 1 failed, 130 interrupted. Ctrl-C "
      "cancels the campaign; its results stay in the database (pawl history). orchestrator.log and "
      "worker.log are next to the database.");
  command
      ->add_option("BUNDLE", flags->bundle, "Folder of the kernel bundle, or the name of a bundle that ships with Pawl")
      ->required();
  AddSpecFlags(*command, &flags->spec);
  AddWorkerFlags(*command, &flags->worker);
  command
      ->add_option("--profiles", flags->profiles,
                   "Folder whose decision_tree.toml, gates.toml and metrics.toml replace the built-in ones")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  command->add_option("--http", flags->http, "Serve the dashboard during the run: a port on 127.0.0.1, or host:port")
      ->type_name("ADDRESS");
  command->add_flag("--no-progress", flags->no_progress, "Print only the result");
  command->add_flag("--json", flags->json, "Print JSON for programs: the finished campaign, one object");
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace pawl
