// `pawl archive` and `pawl restore`: campaigns leave the database whole, and come back whole.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/settings.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

struct ArchiveFlags {
  ConnectionFlags connection;
  std::vector<std::string> campaigns;
  std::string file;
  std::string keep;
  bool keep_best = false;
};

// The orchestrator's program owns databases: it does the work, on one that nobody serves.
int MoveCampaigns(const std::string& command, const ArchiveFlags& flags, std::vector<std::string> arguments) {
  const absl::StatusOr<Settings> settings = ReadSettings(flags.connection);
  if (!settings.ok()) return Fail(command, settings.status());
  if (!settings->orchestrator.empty()) {
    return Fail(command,
                absl::FailedPreconditionError(
                    "campaigns are moved on the machine of the database, while no orchestrator serves it: name "
                    "the file with --database"));
  }
  const absl::StatusOr<std::string> program = FindPawlProgram("pawl-orchestrator");
  if (!program.ok()) return Fail(command, program.status());
  ProcessOptions process;
  process.argv = {*program, "--database", settings->database.string()};
  process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
  process.timeout = absl::Hours(24);
  process.grace = absl::Seconds(10);
  const absl::StatusOr<ProcessResult> result = RunProcess(process);
  if (!result.ok()) return Fail(command, result.status());
  std::fputs(result->out.c_str(), stdout);
  std::fputs(absl::StrReplaceAll(result->err, {{"pawl-orchestrator: ", "pawl " + command + ": "}}).c_str(), stderr);
  if (!result->ok() && result->err.empty()) return Fail(command, absl::InternalError(EndText(*result)));
  return result->ok() ? kDone : (result->exit_code == kWrongUsage ? kWrongUsage : kFailed);
}

std::string Absolute(const std::string& file) {
  std::error_code error;
  return std::filesystem::absolute(file, error).string();
}

}  // namespace

void AddArchive(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ArchiveFlags>();
  CLI::App* command = app.add_subcommand("archive", "Move ended campaigns out of the database into a file");
  command->group(kSteering)->footer(
      "Example: pawl archive 3 4 --output 2026-spring.pawl --database pawl.db\n"
      "For a database that no orchestrator serves. `pawl restore` brings the campaigns back.");
  command->add_option("CAMPAIGN", flags->campaigns, "Campaigns that have ended");
  command->add_option("--keep", flags->keep, "Instead: all campaigns that ended longer ago, as in 90d or 36h")
      ->type_name("DURATION");
  command->add_flag("--keep-best", flags->keep_best,
                    "With --keep: the fastest campaign of each bundle, GPU and size stays");
  command->add_option("--output", flags->file, "File to write; it must not exist")->type_name("FILE")->required();
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    std::vector<std::string> arguments;
    if (flags->campaigns.empty() == flags->keep.empty()) {
      *exit_code =
          Fail("archive", absl::InvalidArgumentError("name the campaigns, or --keep 90d for all that ended earlier"));
      return;
    }
    if (!flags->campaigns.empty()) arguments.push_back("--archive");
    arguments.insert(arguments.end(), flags->campaigns.begin(), flags->campaigns.end());
    if (!flags->keep.empty()) arguments.insert(arguments.end(), {"--keep", flags->keep});
    if (flags->keep_best) arguments.push_back("--keep-best");
    arguments.insert(arguments.end(), {"--output", Absolute(flags->file)});
    *exit_code = MoveCampaigns("archive", *flags, std::move(arguments));
  });
}

void AddRestore(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ArchiveFlags>();
  CLI::App* command = app.add_subcommand("restore", "Bring the campaigns of an archive back into the database");
  command->group(kSteering)->footer(
      "Example: pawl restore 2026-spring.pawl --database pawl.db\n"
      "For a database that no orchestrator serves. The file stays.");
  command->add_option("FILE", flags->file, "File that `pawl archive` wrote")->required();
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = MoveCampaigns("restore", *flags, {"--restore", Absolute(flags->file)});
  });
}

}  // namespace pawl
