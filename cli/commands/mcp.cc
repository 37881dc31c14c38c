// `pawl mcp`: Pawl's tools for agents, by the Model Context Protocol over standard input and output.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/mcp/stdio.h"
#include "agent/tools/pawl_features.h"
#include "base/names/spelling.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/connect/flags.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/local_worker.h"
#include "cli/drive/connected_campaigns.h"
#include "cli/drive/mcp_socket.h"
#include "worker/check/bundle_check.h"

namespace pawl {
namespace {

// Bundles of this machine's folders, and such that are sent file by file.
class FolderBundles final : public Bundles {
 public:
  absl::StatusOr<v1::Bundle> Read(const BundleSource& source) const override {
    if (!source.folder.empty()) return LoadBundle(source.folder);
    absl::StatusOr<std::unique_ptr<GivenBundle>> folder = GivenBundle::Write(source.files);
    if (!folder.ok()) return folder.status();
    return LoadBundle((*folder)->path().string());
  }

  absl::StatusOr<v1::CheckReport> Check(const BundleSource& source, const std::string& gpu) const override {
    BundleCheckOptions options;
    options.stopped = Interrupted;
    std::vector<std::string> known;
    for (const GpuSpec& spec : KnownGpus()) {
      known.push_back(spec.file);
      if (gpu.empty()) options.gpus.push_back(&spec);
    }
    if (const GpuSpec* spec = gpu.empty() ? nullptr : FindGpu(gpu)) options.gpus.push_back(spec);
    if (options.gpus.empty())
      return absl::InvalidArgumentError(absl::StrCat("unknown GPU ", gpu, Expected(gpu, known)));
    if (!source.folder.empty()) return CheckBundle(BundlePath(source.folder), options);
    absl::StatusOr<std::unique_ptr<GivenBundle>> folder = GivenBundle::Write(source.files);
    if (!folder.ok()) return folder.status();
    return CheckBundle((*folder)->path(), options);
  }
};

struct McpFlags {
  ConnectionFlags connection;
  std::string campaign;
  std::string author;
  std::string connect;
  WorkerFlags worker;
};

absl::StatusOr<int> Serve(const McpFlags& flags, const std::string& version, Connection& connection) {
  std::unique_ptr<Daemon> worker;
  if (!flags.worker.device.empty()) {
    absl::StatusOr<std::unique_ptr<Daemon>> started =
        StartLocalWorker(flags.worker, connection.address(), connection.settings().credentials, LocalWorkerName(),
                         DaemonLog(connection.settings(), "worker"));
    if (!started.ok()) return started.status();
    worker = *std::move(started);
  }
  PawlFeatures::Options options;
  options.version = version;
  options.author = flags.author;
  options.campaign = flags.campaign;
  const PawlFeatures features(CampaignsOf(connection), std::make_unique<FolderBundles>(), options);
  const McpServer server(features);
  McpStdioOptions stdio;
  stdio.stopped = Interrupted;
  const absl::Status served = ServeMcpStdio(server, stdio);
  if (!served.ok()) return served;
  return kDone;
}

int RunMcp(const McpFlags& flags, const std::string& version) {
  signal(SIGPIPE, SIG_IGN);  // a client that is gone is noticed by what can't be written
  if (!flags.connect.empty()) {
    const absl::Status bridged = BridgeToSocket(flags.connect);
    return bridged.ok() ? kDone : Fail("mcp", bridged);
  }
  NoteInterrupts();
  return WithConnection("mcp", flags.connection, Need::kDatabase,
                        [&](Connection& connection) { return Serve(flags, version, connection); });
}

}  // namespace

void AddMcp(CLI::App& app, const std::string& version, int* exit_code) {
  auto flags = std::make_shared<McpFlags>();
  flags->worker.device.clear();
  CLI::App* command = app.add_subcommand("mcp", "Serve Pawl's tools to agents (Model Context Protocol, stdio)");
  command->group(kRunning)->footer(
      "Examples: claude mcp add pawl -- pawl mcp\n"
      "          codex mcp add pawl -- pawl mcp --device auto\n"
      "A client starts it and talks to it over standard input and output. It uses the orchestrator that serves the "
      "database, or starts one of its own; with --device it also starts a worker. docs/agents.md has the "
      "configuration of common clients.");
  AddCampaignOption(*command, &flags->campaign, "Serve this campaign only");
  command->add_option("--author", flags->author,
                      "Author of what is submitted and proposed (default: the client's name)");
  command
      ->add_option("--connect", flags->connect,
                   "Pass everything on to this socket of `pawl agent`, which starts its agents so")
      ->type_name("SOCKET");
  AddWorkerFlags(*command, &flags->worker);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code, version] { *exit_code = RunMcp(*flags, version); });
}

}  // namespace pawl
