#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/names/spelling.h"
#include "cli/commands/commands.h"

int main(int argc, char** argv) {
  try {
    CLI::App app("Pawl makes GPU kernels faster, one proven change at a time.", "pawl");
    app.set_version_flag("--version", "pawl " PAWL_VERSION);
    app.require_subcommand(1);
    app.footer(
        "Example: pawl run attention\n"
        "Help on a command: pawl run --help\n"
        "Where the orchestrator is: --orchestrator and --database win over PAWL_ORCHESTRATOR and PAWL_DATABASE, those\n"
        "over `orchestrator` and `database` of the config file (--config, PAWL_CONFIG, ~/.config/pawl/pawl.toml).");
    int exit_code = pawl::kDone;
    // In the order of `pawl --help`: by group, and by name within it.
    pawl::AddRun(app, &exit_code);
    pawl::AddSubmit(app, &exit_code);
    pawl::AddVerify(app, &exit_code);

    pawl::AddBest(app, &exit_code);
    pawl::AddCampaigns(app, &exit_code);
    pawl::AddDiff(app, &exit_code);
    pawl::AddExplain(app, &exit_code);
    pawl::AddHistory(app, &exit_code);
    pawl::AddPatterns(app, &exit_code);
    pawl::AddReport(app, &exit_code);
    pawl::AddShow(app, &exit_code);
    pawl::AddSituation(app, &exit_code);
    pawl::AddWatch(app, &exit_code);
    pawl::AddWorkers(app, &exit_code);

    pawl::AddCancel(app, &exit_code);
    pawl::AddPause(app, &exit_code);
    pawl::AddPropose(app, &exit_code);
    pawl::AddResume(app, &exit_code);

    pawl::AddCheck(app, &exit_code);
    pawl::AddDiagnose(app, &exit_code);
    pawl::AddDoctor(app, &exit_code);
    pawl::AddImport(app, &exit_code);
    pawl::AddRecord(app, &exit_code);
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands(nullptr)) known.push_back(command->get_name());
    if (argc > 1 && argv[1][0] != '-' && std::find(known.begin(), known.end(), argv[1]) == known.end()) {
      std::fprintf(stderr, "pawl: there is no command %s%s\n", argv[1], pawl::Expected(argv[1], known).c_str());
      return pawl::kWrongUsage;
    }
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // CLI11 has a code for each kind of mistake; to the caller they are one.
      return app.exit(error) == 0 ? pawl::kDone : pawl::kWrongUsage;
    }
    return exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl: %s\n", error.what());
    return pawl::kFailed;
  }
}
