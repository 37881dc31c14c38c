// `pawl propose`: the next change to try.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/author.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_line.h"

namespace pawl {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string campaign, change, author, why;
  bool json = false;
};

// Empty where the text is no change.
v1::Change ReadChange(const std::string& text) {
  v1::Change change;
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  int value = 0;
  if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &value)) return change;
  change.set_variable(parts.first);
  change.set_to(value);
  return change;
}

std::string CheckChange(const std::string& text) {
  if (ReadChange(text).has_to()) return "";
  return absl::StrCat("\"", text, "\" is no change: expected VARIABLE=VALUE, such as TILE_M=16");
}

absl::StatusOr<int> Propose(const Flags& flags, Connection& connection) {
  v1::ProposeChangeRequest request;
  request.set_campaign(flags.campaign);
  *request.mutable_change() = ReadChange(flags.change);
  request.set_author(flags.author.empty() ? Author() : flags.author);
  request.set_why(flags.why);
  absl::StatusOr<v1::ProposeChangeResponse> reply = connection.client().Propose(request);
  if (!reply.ok()) return reply.status();
  if (flags.json) {
    PrintJsonLine(*reply, /*every_field=*/true);
  } else {
    std::printf("%s will be tried %s\n", flags.change.c_str(),
                reply->waiting() == 0 ? "next" : absl::StrCat("after ", reply->waiting(), " other proposals").c_str());
  }
  return kDone;
}

}  // namespace

void AddPropose(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("propose", "Have a change tried next, from the best variant");
  command->group(kSteering)->footer("Example: pawl propose 7 TILE_M=16 --why \"eight blocks instead of two\"");
  AddCampaign(*command, &flags->campaign);
  command->add_option("CHANGE", flags->change, "VARIABLE=VALUE: one variable and the value to give it")
      ->required()
      ->check(CLI::Validator(CheckChange, ""));
  command->add_option("--author", flags->author, "Who proposes it (default: the user's name)");
  command->add_option("--why", flags->why, "What it should do; recorded with it");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("propose", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Propose(*flags, connection); });
  });
}

}  // namespace pawl
