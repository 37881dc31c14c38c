// `pawl help`: help on the program, a command, or the flags of the connection.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/spelling.h"
#include "base/options/help_format.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/output/files.h"
#include "cli/output/help_files.h"

namespace pawl {
namespace {

constexpr char kConnection[] = "connection";

std::string ConnectionHelp() {
  CLI::App topic("How a command finds its orchestrator. These flags may come before or after the command.");
  topic.set_help_flag();
  ConnectionFlags flags;
  AddConnectionFlags(topic, &flags);
  topic.footer(
      "A flag takes precedence over the environment (PAWL_ORCHESTRATOR, PAWL_DATABASE, PAWL_CONFIG, PAWL_TLS_CA, "
      "PAWL_TLS_CERT, PAWL_TLS_KEY, PAWL_TOKEN_FILE), the environment over the settings file (keys orchestrator, "
      "database, tls-ca, tls-cert, tls-key, token-file).\n"
      "Without an address, pawl uses the orchestrator that has the database open; if none has, it starts one for the "
      "duration of the command.\n"
      "Unix sockets and loopback addresses need no TLS. An orchestrator on another machine needs --tls-ca, and a "
      "certificate (--tls-cert, --tls-key) or a token (--token-file); docs/security.md describes the roles.");
  HelpFormatter formatter;
  return absl::StrCat(topic.get_description(), "\n", formatter.FlagGroups(topic), "\n", formatter.make_footer(&topic));
}

absl::Status WriteManPages(const CLI::App& app, const std::string& version, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const ManPage& page : ManPages(app, version)) {
    absl::Status written = WriteTextFile(std::filesystem::path(folder) / page.file, page.text);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

int Help(CLI::App& app, const std::string& topic) {
  std::vector<std::string> known = CommandNames(app);
  known.emplace_back(kConnection);
  if (topic == kConnection) {
    std::fputs(ConnectionHelp().c_str(), stdout);
    return kDone;
  }
  const CLI::App* command = nullptr;
  for (const CLI::App* each : app.get_subcommands({})) {
    if (each->get_name() == topic) command = each;
  }
  if (!topic.empty() && command == nullptr) {
    std::fprintf(stderr, "pawl help: there is no topic %s%s\n  fix: `pawl help` lists all commands\n", topic.c_str(),
                 NearestNames(topic, known).c_str());
    return kWrongUsage;
  }
  const std::string text = command != nullptr
                               ? command->help("pawl")
                               : app.get_formatter()->make_help(&app, "pawl", CLI::AppFormatMode::Normal);
  std::fputs(text.c_str(), stdout);
  return kDone;
}

}  // namespace

void AddHelp(CLI::App& app, const std::string& version, int* exit_code) {
  struct Flags {
    std::string topic, man;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("help", "Show help on a command or on the connection flags");
  command->group(kHelping)->footer("Examples: pawl help history\n          pawl help connection");
  command->add_option("TOPIC", flags->topic, "A command, or connection");
  command->add_option("--man", flags->man, "Write the man pages into this folder")->type_name("FOLDER")->group("");
  command->callback([&app, flags, version, exit_code] {
    if (flags->man.empty()) {
      *exit_code = Help(app, flags->topic);
      return;
    }
    const absl::Status written = WriteManPages(app, version, flags->man);
    *exit_code = written.ok() ? kDone : Fail("help", written);
  });
}

}  // namespace pawl
