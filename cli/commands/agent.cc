// `pawl agent`: command-line agents that propose changes to a campaign.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/local_worker.h"
#include "cli/drive/agent_run.h"

namespace pawl {
namespace {

struct AgentFlags {
  ConnectionFlags connection;
  AgentRunOptions run;
  std::string prompt, folder;
  WorkerFlags worker;
};

// ~/.local/share/pawl/agents/campaign-7-20261116T081500Z, next to the database.
std::filesystem::path FolderOf(const AgentFlags& flags, const Settings& settings) {
  if (!flags.folder.empty()) return std::filesystem::absolute(flags.folder);
  const std::string when = absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone());
  return settings.database.parent_path() / "agents" /
         absl::StrCat("campaign-", ShortName(flags.run.campaign), "-", when);
}

absl::StatusOr<int> Drive(const AgentFlags& flags, Connection& connection) {
  AgentRunOptions options = flags.run;
  options.folder = FolderOf(flags, connection.settings());
  if (!flags.prompt.empty()) {
    std::ifstream in(flags.prompt);
    if (!in) return absl::NotFoundError(absl::StrCat("can't read ", flags.prompt));
    options.more_prompt =
        absl::StrCat("\n", std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return absl::UnavailableError(absl::StrCat("can't make ", options.folder.string(), ": ", error.message()));
  std::unique_ptr<Daemon> worker;
  if (!flags.worker.device.empty()) {
    absl::StatusOr<std::unique_ptr<Daemon>> started =
        StartLocalWorker(flags.worker, connection.address(), connection.settings().credentials, LocalWorkerName(),
                         DaemonLog(connection.settings(), "worker"));
    if (!started.ok()) return started.status();
    worker = *std::move(started);
  }
  return RunAgents(connection, options);
}

int RunAgentCommand(const AgentFlags& flags) {
  signal(SIGPIPE, SIG_IGN);  // an agent that is gone is noticed by what can't be written
  NoteInterrupts(2);         // the second one kills the agents
  return WithConnection("agent", flags.connection, Need::kCampaigns,
                        [&](Connection& connection) { return Drive(flags, connection); });
}

void AddLimits(CLI::App& command, AgentLimits* limits) {
  command.add_option("--proposals", limits->proposals, "Stop after this many proposals")->check(AboveZero());
  command.add_option("--tokens", limits->tokens, "Stop after this many tokens, as the agents report them")
      ->check(AboveZero());
  command.add_option("--dollars", limits->dollars, "Stop after this many dollars, as the agents report them")
      ->check(AboveZero());
  command.add_option("--gpu-seconds", limits->gpu_seconds, "Stop after this many seconds of GPU time")
      ->check(AboveZero());
  command.add_option("--minutes", limits->minutes, "Stop after this many minutes")->check(AboveZero());
  command
      .add_option("--without-keep", limits->without_keep, "Stop after this many proposals in a row that were not kept")
      ->check(AboveZero());
  command
      .add_option("--idle-minutes", limits->idle_minutes,
                  "Stop an agent that has called no tool for this many minutes (default: 20)")
      ->check(AboveZero());
}

}  // namespace

void AddAgent(CLI::App& app, const std::string& version, int* exit_code) {
  auto flags = std::make_shared<AgentFlags>();
  flags->worker.device.clear();
  flags->run.limits.idle_minutes = 20;
  CLI::App* command = app.add_subcommand("agent", "Let command-line agents propose changes to a campaign");
  command->group(kRunning)->footer(
      "Examples: pawl agent 7 --command codex --proposals 20\n"
      "          pawl agent 7 --command \"claude --model opus\" --agents 2 --dollars 5\n"
      "          pawl agent 7 --command \"./my-agent --mcp {mcp_config} {prompt_file}\"\n"
      "codex, claude, gemini and opencode are known by name: they get Pawl's tools and the prompt. Another command "
      "finds them where {mcp_config}, {prompt} and {prompt_file} stand in it. Limits hold for all agents together. "
      "Exit "
      "code: 0 "
      "a proposal was kept, 3 none was, 1 failed, 130 interrupted.");
  AddCampaign(*command, &flags->run.campaign);
  command->add_option("--command", flags->run.command, "The agent's command, or its name")->required();
  command->add_option("--agents", flags->run.agents, "Number of agents that run at the same time (default: 1)")
      ->check(CLI::Range(1, 64));
  AddLimits(*command, &flags->run.limits);
  command->add_option("--prompt", flags->prompt, "File whose text is added to Pawl's prompt")->type_name("FILE");
  command
      ->add_option("--folder", flags->folder,
                   "Folder for the agents' work and transcripts (default: agents/... next to the database)")
      ->type_name("FOLDER");
  AddWorkerFlags(*command, &flags->worker);
  AddJsonFlag(*command, &flags->run.json);
  AddConnectionFlags(*command, &flags->connection);
  flags->run.version = version;
  command->callback([flags, exit_code] { *exit_code = RunAgentCommand(*flags); });
}

}  // namespace pawl
