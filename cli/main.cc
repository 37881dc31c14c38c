#include <cstdio>
#include <exception>

#include "cli/commands.h"

int main(int argc, char** argv) {
  try {
    CLI::App app("Pawl makes GPU kernels faster, one proven change at a time.", "pawl");
    app.set_version_flag("--version", "pawl " PAWL_VERSION);
    app.require_subcommand(1);
    app.footer("Example: pawl check kernels/attention\nHelp on a command: pawl check --help");
    int exit_code = pawl::kDone;
    pawl::AddCheck(app, &exit_code);
    pawl::AddDoctor(app, &exit_code);
    pawl::AddRecord(app, &exit_code);
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
