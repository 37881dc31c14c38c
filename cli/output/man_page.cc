#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/connect/flags.h"
#include "cli/output/help_files.h"
#include "cli/text/help_format.h"

namespace pawl {
namespace {

// Text that roff leaves as it is: a dot or a quote at a line's beginning is a request.
std::string Plain(absl::string_view text) {
  std::string plain;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!plain.empty()) plain += '\n';
    const bool request = absl::StartsWith(line, ".") || absl::StartsWith(line, "'");
    absl::StrAppend(&plain, request ? "\\&" : "", absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}}));
  }
  return plain;
}

void AddOptions(const CLI::App& app, bool of_connection, const HelpFormatter& formatter, std::string* text) {
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_positional();
    if (!positional && IsConnectionGroup(option->get_group()) != of_connection) continue;
    absl::StrAppend(text, ".TP\n\\fB", Plain(option->get_name(positional, !positional)), "\\fR",
                    Plain(formatter.make_option_opts(option)), "\n", Plain(formatter.make_option_desc(option)), "\n");
  }
}

void AddFooter(const CLI::App& app, std::string* text) {
  if (app.get_footer().empty()) return;
  absl::StrAppend(text, ".SH NOTES\n.nf\n", Plain(app.get_footer()), "\n.fi\n");
}

std::string Begin(const std::string& name, const std::string& version, const std::string& summary,
                  const std::string& usage) {
  return absl::StrCat(".\\\" Made by `pawl help --man`.\n.TH ", absl::AsciiStrToUpper(Plain(name)), " 1 \"\" \"pawl ",
                      version, "\" \"Pawl\"\n.SH NAME\n", Plain(name), " \\- ", Plain(summary), "\n.SH SYNOPSIS\n",
                      Plain(usage), "\n");
}

std::string Usage(const CLI::App& app, const HelpFormatter& formatter, const std::string& name) {
  std::string usage = formatter.make_usage(&app, name);
  usage.erase(usage.find_last_not_of('\n') + 1);
  return std::string(absl::StripAsciiWhitespace(usage.substr(usage.find(':') + 1)));
}

}  // namespace

std::vector<ManPage> ManPages(const CLI::App& app, const std::string& version) {
  const HelpFormatter formatter;
  std::string program = Begin("pawl", version, app.get_description(), Usage(app, formatter, "pawl")) + ".SH OPTIONS\n";
  AddOptions(app, /*of_connection=*/false, formatter, &program);
  CLI::App connection;
  ConnectionFlags flags;
  AddConnectionFlags(connection, &flags);
  program += ".SH CONNECTION\nThese may come before or after the command.\n";
  AddOptions(connection, /*of_connection=*/true, formatter, &program);
  program += ".SH COMMANDS\n";
  std::vector<ManPage> pages;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = absl::StrCat("pawl-", command->get_name());
    absl::StrAppend(&program, ".TP\n\\fB", Plain(name), "\\fR(1)\n", Plain(command->get_description()), "\n");
    std::string text = Begin(name, version, command->get_description(),
                             Usage(*command, formatter, absl::StrCat("pawl ", command->get_name())));
    text += ".SH OPTIONS\n";
    AddOptions(*command, /*of_connection=*/false, formatter, &text);
    if (HasConnectionFlags(*command)) text += ".PP\nFlags of the connection: see \\fBpawl\\fR(1).\n";
    AddFooter(*command, &text);
    pages.push_back({name + ".1", text + ".SH SEE ALSO\n\\fBpawl\\fR(1)\n"});
  }
  AddFooter(app, &program);
  pages.push_back({"pawl.1", program});
  return pages;
}

}  // namespace pawl
