// `pawl patterns`: what many iterations taught, to look at and to hand on.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/output/files.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

struct PatternsFlags {
  ConnectionFlags connection;
  std::string architecture, rule, export_to, import_from, source;
  bool by_bundle = false;
  bool own = false;
  bool json = false;
};

// "14 of 20"; "-" where there were none.
std::string Share(int part, int whole) { return whole == 0 ? "-" : absl::StrCat(part, " of ", whole); }

void PrintTable(const v1::ListPatternsResponse& response) {
  using Align = Table::Align;
  Table table({{"rule"},
               {"effect"},
               {"architecture"},
               {"bundle"},
               {"tried", Align::kRight},
               {"kept", Align::kRight},
               {"median gain", Align::kRight},
               {"came true", Align::kRight}});
  for (const v1::Pattern& pattern : response.patterns()) {
    table.Add({pattern.rule(), EffectText(pattern.effect()), pattern.architecture(),
               pattern.bundle().empty() ? "all" : pattern.bundle(), absl::StrCat(pattern.tried()),
               absl::StrCat(pattern.kept()), SpeedupText(pattern.median_gain()),
               Share(pattern.came_true(), pattern.predictions())});
  }
  if (!table.empty()) std::fputs(table.Text(TerminalWidth(STDOUT_FILENO)).c_str(), stdout);
}

// Where and when: what tells the patterns of two files apart.
std::string SourceText(const PatternsFlags& flags) {
  if (!flags.source.empty()) return flags.source;
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("campaigns on ", host, " until ", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
}

absl::Status Export(const PatternsFlags& flags, const v1::ListPatternsResponse& response) {
  v1::PatternFile file;
  file.set_version(kPatternFileVersion);
  file.set_source(SourceText(flags));
  *file.mutable_patterns() = response.patterns();
  if (absl::Status written = WriteTextFile(flags.export_to, PatternFileText(file)); !written.ok()) return written;
  std::fprintf(stderr, "wrote %d patterns to %s\n", file.patterns_size(), flags.export_to.c_str());
  return absl::OkStatus();
}

absl::StatusOr<v1::PatternFile> ReadFile(const std::string& file) {
  constexpr size_t kMaxBytes = 64 << 20;
  absl::StatusOr<std::string> text = ReadPackedFile(file, kMaxBytes);
  if (!text.ok()) return text.status();
  return ParsePatternFile(*text, file);
}

absl::StatusOr<int> Import(const v1::PatternFile& file, bool json, Connection& connection) {
  v1::ImportPatternsRequest request;
  *request.mutable_file() = file;
  // The same source again replaces what it brought before, so it may be asked twice.
  absl::StatusOr<v1::ImportPatternsResponse> reply =
      connection.Ask([&](CampaignClient& client) { return client.ImportPatterns(request); });
  if (!reply.ok()) return reply.status();
  if (json) {
    PrintJsonLine(*reply, /*every_field=*/true);
  } else if (reply->imported() == 0 && !file.patterns().empty()) {
    std::printf("the patterns of \"%s\" come from this database and are in use already\n",
                OneLine(file.source()).c_str());
  } else {
    std::printf("imported %d patterns of \"%s\"; later campaigns use them\n", reply->imported(),
                OneLine(file.source()).c_str());
  }
  return kDone;
}

absl::StatusOr<int> List(const PatternsFlags& flags, Connection& connection) {
  v1::ListPatternsRequest request;
  request.set_architecture(flags.architecture);
  request.set_rule(flags.rule);
  request.set_by_bundle(flags.by_bundle);
  // What shipped or was imported here is there already, or can be had from where it came: it must not count twice.
  request.set_own(flags.own || !flags.export_to.empty());
  absl::StatusOr<v1::ListPatternsResponse> response =
      connection.Ask([&](CampaignClient& client) { return client.ListPatterns(request); });
  if (!response.ok()) return response.status();
  if (!flags.export_to.empty()) {
    if (absl::Status exported = Export(flags, *response); !exported.ok()) return exported;
  } else if (flags.json) {
    for (const v1::Pattern& pattern : response->patterns()) PrintJsonLine(pattern, /*every_field=*/true);
  } else {
    PrintTable(*response);
  }
  std::fflush(stdout);
  if (response->patterns().empty()) {
    std::fprintf(stderr, request.own() ? "No patterns from this database's campaigns yet\n"
                                       : "No patterns yet: campaigns collect them\n");
  }
  return kDone;
}

int Patterns(const PatternsFlags& flags) {
  v1::PatternFile file;
  if (!flags.import_from.empty()) {
    absl::StatusOr<v1::PatternFile> read = ReadFile(flags.import_from);
    if (!read.ok()) return Fail("patterns", read.status());
    file = *std::move(read);
  }
  return WithConnection("patterns", flags.connection, Need::kDatabase, [&](Connection& connection) {
    return flags.import_from.empty() ? List(flags, connection) : Import(file, flags.json, connection);
  });
}

}  // namespace

void AddPatterns(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<PatternsFlags>();
  CLI::App* command = app.add_subcommand("patterns", "Show, export or import what earlier campaigns learned");
  command->group(kLooking)->footer(
      "Examples: pawl patterns --architecture sm_90\n"
      "          pawl patterns --by-bundle --export patterns.json --source \"our H200s\"\n"
      "          pawl patterns --import patterns.json\n"
      "Each line is about changes that give more (+) or less (-) of a resource after a finding of the rule: how often "
      "they were tried and kept, and their median speedup.");
  CLI::Option* architecture = command->add_option("--architecture", flags->architecture,
                                                  "Show only patterns of this GPU architecture, such as sm_90");
  CLI::Option* rule = command->add_option("--rule", flags->rule, "Show only patterns of this rule");
  CLI::Option* by_bundle =
      command->add_flag("--by-bundle", flags->by_bundle, "Also show the patterns of single bundles");
  CLI::Option* own = command->add_flag(
      "--own", flags->own, "Show only patterns of this database's campaigns, without imported and shipped ones");
  CLI::Option* to = command->add_option("--export", flags->export_to, "Write this database's own patterns to a file")
                        ->type_name("FILE");
  command
      ->add_option("--source", flags->source,
                   "Name of the source recorded in the exported file (default: this host and today)")
      ->needs(to);
  CLI::Option* from = command
                          ->add_option("--import", flags->import_from,
                                       "Import patterns from a file; importing the same source again replaces them")
                          ->type_name("FILE");
  for (CLI::Option* option : {architecture, rule, by_bundle, own, to}) from->excludes(option);
  command->add_flag("--json", flags->json, "Print JSON for programs: one object per line")->excludes(to);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Patterns(*flags); });
}

}  // namespace pawl
