// `pawl propose`: the next change to try.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/settings.h"
#include "cli/output/files.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/why_not.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

struct ProposeFlags {
  ConnectionFlags connection;
  std::string campaign, change, patch, name, author, why;
  bool json = false;
};

absl::StatusOr<v1::Change> MakeEdit(const ProposeFlags& flags) {
  absl::StatusOr<std::string> patch = ReadPatch(flags.patch);
  if (!patch.ok()) return patch.status();
  v1::Change change;
  change.mutable_source()->set_name(flags.name);
  change.mutable_source()->set_patch(*std::move(patch));
  return change;
}

// `edit`: nothing where a variable is to change.
absl::StatusOr<int> Send(const ProposeFlags& flags, const std::optional<v1::Change>& edit, Connection& connection) {
  v1::ProposeChangeRequest request;
  request.set_campaign(flags.campaign);
  request.set_author(flags.author.empty() ? Author() : flags.author);
  request.set_why(flags.why);
  // A campaign that waits has nothing planned; any other tries what is planned before it asks for proposals.
  const absl::StatusOr<v1::Situation> situation = connection.client().GetSituation(flags.campaign);
  const bool waited = situation.ok() && situation->waits();
  if (edit) {
    *request.mutable_change() = *edit;
  } else {
    if (!situation.ok()) return situation.status();  // which values there are is not known
    absl::StatusOr<v1::Change> known = KnownChange(flags.change, situation->variables(), flags.campaign);
    if (!known.ok()) {
      Fail("propose", known.status());
      return kWrongUsage;
    }
    *request.mutable_change() = *std::move(known);
  }
  absl::StatusOr<v1::ProposeChangeResponse> reply = connection.client().Propose(request);
  if (!reply.ok()) return reply.status();
  if (flags.json) {
    PrintJsonLine(*reply, /*every_field=*/true);
  } else {
    const int before = reply->waiting();
    const std::string others = before == 1 ? "1 other proposal" : absl::StrCat(before, " other proposals");
    std::string when = waited && before == 0 ? "next" : "after the trials that are planned already";
    if (before > 0) when = absl::StrCat("after ", waited ? "" : "the trials that are planned already and ", others);
    if (situation.ok() && situation->campaign().state() == v1::PAUSED) {
      absl::StrAppend(&when, "; ", flags.campaign, " is paused: pawl resume ", ShortName(flags.campaign),
                      FlagsText(flags.connection), " continues it");
    }
    std::printf("%s will be tried %s\n", edit ? ChangeText(*edit).c_str() : flags.change.c_str(), when.c_str());
  }
  return kDone;
}

int Propose(const ProposeFlags& flags) {
  if (flags.change.empty() == flags.patch.empty()) {
    Fail("propose", absl::InvalidArgumentError(
                        flags.change.empty() ? "expected VARIABLE=VALUE, or --patch FILE --name NAME"
                                             : "VARIABLE=VALUE and --patch are two changes; propose one at a time"));
    return kWrongUsage;
  }
  std::optional<v1::Change> edit;
  if (!flags.patch.empty()) {
    absl::StatusOr<v1::Change> made = MakeEdit(flags);
    if (!made.ok()) return Fail("propose", made.status());
    edit = *std::move(made);
  }
  return WithConnection("propose", flags.connection, Need::kCampaigns,
                        [&](Connection& connection) { return Send(flags, edit, connection); });
}

}  // namespace

void AddPropose(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ProposeFlags>();
  CLI::App* command = app.add_subcommand("propose", "Propose the next change to the best variant");
  command->group(kSteering)->footer(
      "Examples: pawl propose 7 TILE_M=16 --why \"eight blocks instead of two\"\n"
      "          pawl situation 7 --checkout old && cp -r old new        then edit new\n"
      "          diff -ruN old new > my.diff\n"
      "          pawl propose 7 --patch my.diff --name unroll-inner\n"
      "A proposal passes the same gates and gets the same verdict as a change that Pawl chooses. `pawl situation` "
      "shows the variables and what was tried.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("CHANGE", flags->change, "VARIABLE=VALUE: one variable and its new value, a number or a word")
      ->check(CLI::Validator(CheckChange, ""));
  CLI::Option* patch =
      command
          ->add_option(
              "--patch", flags->patch,
              "Edit: a unified diff of the best variant's files and kernel.toml (pawl situation --checkout); - reads "
              "standard input")
          ->type_name("FILE");
  CLI::Option* name = command->add_option("--name", flags->name, "Name of the edit in the history")->needs(patch);
  patch->needs(name);
  command->add_option("--author", flags->author, "Author of the proposal (default: your user name)");
  command->add_option("--why", flags->why, "Reason, recorded with the proposal");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Propose(*flags); });
}

}  // namespace pawl
