#include "cli/commands/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <set>

#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "cli/connect/flags.h"
#include "cli/drive/keeper.h"
#include "cli/text/help_format.h"

namespace pawl {
namespace {

// Only the name of a file may have bytes that are no UTF-8: a message can't carry them.
void CheckTexts(CLI::App& app) {
  const std::set<std::string> files = {"FILE", "FOLDER", "SOCKET", "BUNDLE", "OTHER"};
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || files.contains(option->get_type_name()) ||
        files.contains(option->get_single_name())) {
      continue;
    }
    option->check([](const std::string& text) {
      const std::string valid = ValidUtf8(text);
      return valid == text ? ""
                           : "\"" + Shortened(valid, 200) + "\" is not UTF-8; only names of files may have other bytes";
    });
  }
  for (CLI::App* command : app.get_subcommands({})) CheckTexts(*command);
}

}  // namespace

std::unique_ptr<CLI::App> MakePawlApp(const std::string& version, int* exit_code) {
  auto made = std::make_unique<CLI::App>("Pawl makes GPU kernels faster, one proven change at a time.", "pawl");
  CLI::App& app = *made;
  app.formatter(std::make_shared<CommandHelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", "pawl " + version, "Print the version");
  app.require_subcommand(1);
  app.footer(
      "Example: pawl run attention\n"
      "Help on a command: pawl help run\n"
      "Flags of the connection (--database, --orchestrator, ...) and --json may come before or after the command; "
      "`pawl help connection` lists them.");
  // In the order of `pawl --help`: by group, and by name within it.
  AddAgent(app, version, exit_code);
  AddCompare(app, exit_code);
  AddMcp(app, version, exit_code);
  AddRun(app, exit_code);
  AddSubmit(app, exit_code);
  AddVerify(app, exit_code);

  AddBest(app, exit_code);
  AddCampaigns(app, exit_code);
  AddDiff(app, exit_code);
  AddExplain(app, exit_code);
  AddHistory(app, exit_code);
  AddLessons(app, exit_code);
  AddPatterns(app, exit_code);
  AddReport(app, exit_code);
  AddShow(app, exit_code);
  AddSituation(app, exit_code);
  AddWatch(app, exit_code);
  AddWorkers(app, exit_code);

  AddArchive(app, exit_code);
  AddCancel(app, exit_code);
  AddMaintenance(app, exit_code);
  AddPause(app, exit_code);
  AddPropose(app, exit_code);
  AddRestore(app, exit_code);
  AddResume(app, exit_code);

  AddCheck(app, exit_code);
  AddDiagnose(app, exit_code);
  AddDoctor(app, exit_code);
  AddImport(app, exit_code);
  AddInit(app, exit_code);
  AddRecord(app, exit_code);

  AddCompletion(app, exit_code);
  AddHelp(app, version, exit_code);
  CheckTexts(app);
  return made;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> WithCommandFirst(std::vector<std::string> arguments) {
  size_t at = 0;
  for (bool takes_value = false; at < arguments.size() && IsGlobalFlag(arguments[at], &takes_value);) {
    at += takes_value ? 2 : 1;
  }
  if (at < arguments.size()) {
    const auto begin = arguments.begin(), command = begin + static_cast<std::ptrdiff_t>(at);
    std::rotate(begin, command, command + 1);
  }
  return arguments;
}

int RunPawl(std::vector<std::string> arguments, const std::string& version) {
  // For `pawl agent` itself; what follows is another program's command line.
  if (!arguments.empty() && arguments[0] == kKeepAgent) return KeepAgent({arguments.begin() + 1, arguments.end()});
  int exit_code = kDone;
  const std::unique_ptr<CLI::App> app = MakePawlApp(version, &exit_code);
  arguments = WithCommandFirst(std::move(arguments));
  const std::vector<std::string> known = CommandNames(*app);
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      std::find(known.begin(), known.end(), arguments[0]) == known.end()) {
    std::fprintf(stderr, "pawl: there is no command %s%s\n  fix: `pawl help` lists all commands\n",
                 arguments[0].c_str(), NearestNames(arguments[0], known).c_str());
    return kWrongUsage;
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // CLI11 has a code for each kind of mistake; to the caller they are one.
    return app->exit(error) == 0 ? kDone : kWrongUsage;
  }
  return exit_code;
}

}  // namespace pawl
