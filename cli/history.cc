// `pawl history`: the iterations of a campaign, a page at a time.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/iteration_row.h"
#include "cli/json_line.h"
#include "cli/resource_name.h"
#include "cli/words.h"

namespace pawl {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string campaign;
  bool kept = false;
  std::string verdict, variable, finding, sort;
  int page_size = 0;
  std::string page_token;
  bool all = false;
  bool json = false;
};

v1::ListIterationsRequest Request(const Flags& flags) {
  v1::ListIterationsRequest request;
  request.set_campaign(flags.campaign);
  request.set_page_size(flags.page_size);
  request.set_page_token(flags.page_token);
  request.set_variable(flags.variable);
  request.set_finding(flags.finding);
  if (flags.kept || flags.verdict == "kept") request.set_verdict(v1::KEPT);
  if (flags.verdict == "reverted") request.set_verdict(v1::REVERTED);
  if (flags.verdict == "rejected") request.set_verdict(v1::REJECTED);
  if (flags.sort == "-number") request.set_order(v1::ITERATION_ORDER_NUMBER_DESCENDING);
  if (flags.sort == "speedup") request.set_order(v1::ITERATION_ORDER_SPEEDUP);
  return request;
}

// The command that prints the next page: a page token holds for the same filter and order only.
std::string NextCommand(const Flags& flags, const std::string& token) {
  std::string command = absl::StrCat("pawl history ", ShortName(flags.campaign));
  if (flags.kept) command += " --kept";
  if (!flags.verdict.empty()) absl::StrAppend(&command, " --verdict ", flags.verdict);
  if (!flags.variable.empty()) absl::StrAppend(&command, " --variable ", flags.variable);
  if (!flags.finding.empty()) absl::StrAppend(&command, " --finding ", flags.finding);
  if (!flags.sort.empty()) absl::StrAppend(&command, " --sort ", flags.sort);
  if (flags.page_size > 0) absl::StrAppend(&command, " --page-size ", flags.page_size);
  if (flags.json) command += " --json";
  return absl::StrCat(command, FlagsText(flags.connection), " --page-token ", token);
}

void PrintPage(const v1::ListIterationsResponse& page, bool json) {
  Table table(IterationColumns());
  for (const v1::Iteration& iteration : page.iterations()) {
    if (json) {
      std::printf("%s\n", JsonRow(iteration, {"variant", "reason", "comparison", "time_us", "speedup_over_parent",
                                              "speedup_over_start", "speedup_over_baseline", "stages", "device"})
                              .c_str());
    } else {
      table.Add(IterationCells(iteration));
    }
  }
  if (!table.empty()) std::fputs(table.Text(TerminalWidth(STDOUT_FILENO)).c_str(), stdout);
}

absl::Status PrintHead(Connection& connection, const std::string& name) {
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(name); });
  if (!campaign.ok()) return campaign.status();
  std::printf("%s: %s at %s, %s; %s\n", name.c_str(), campaign->bundle().c_str(),
              campaign->spec().goal().size().c_str(), StateWord(campaign->state()).c_str(),
              campaign->device().empty() ? "on no device yet" : absl::StrCat("on ", campaign->device()).c_str());
  return absl::OkStatus();
}

absl::StatusOr<int> History(const Flags& flags, Connection& connection) {
  if (!flags.json) {
    if (absl::Status status = PrintHead(connection, flags.campaign); !status.ok()) return status;
  }
  v1::ListIterationsRequest request = Request(flags);
  // A program asks for everything unless it asks for a page; its lines have no place for a token.
  const bool all = flags.all || (flags.json && flags.page_size == 0 && flags.page_token.empty());
  if (all && flags.page_size == 0) request.set_page_size(1000);
  bool any = false;
  do {
    absl::StatusOr<v1::ListIterationsResponse> page =
        connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
    if (!page.ok()) return page.status();
    PrintPage(*page, flags.json);
    any = any || page->iterations_size() > 0;
    request.set_page_token(page->next_page_token());
  } while (all && !request.page_token().empty());
  std::fflush(stdout);
  if (!any && !flags.json) std::fprintf(stderr, "no iterations%s\n", flags.page_token.empty() ? "" : " on this page");
  if (!request.page_token().empty()) {
    std::fprintf(stderr, "more: %s\n", NextCommand(flags, request.page_token()).c_str());
  }
  return kDone;
}

}  // namespace

void AddHistory(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("history", "List a campaign's iterations: what was tried, and its verdict");
  command->group(kLooking)->footer(
      "Examples: pawl history 7\n"
      "          pawl history 7 --kept --sort speedup\n"
      "          pawl history 7 --json | jq -r '[.number, .verdict, .speedupOverStart] | @tsv'");
  AddCampaign(*command, &flags->campaign);
  CLI::Option* kept = command->add_flag("--kept", flags->kept, "Only what was kept");
  command->add_option("--verdict", flags->verdict, "Only this verdict: kept, reverted or rejected")
      ->check(CLI::IsMember({"kept", "reverted", "rejected"}))
      ->excludes(kept);
  command->add_option("--variable", flags->variable, "Only changes of this variable");
  command->add_option("--finding", flags->finding, "Only changes that served this rule's finding");
  command->add_option("--sort", flags->sort, "number (default), -number (newest first) or speedup (best first)")
      ->check(CLI::IsMember({"number", "-number", "speedup"}));
  command->add_option("--page-size", flags->page_size, "So many at a time, 1 to 1000 (default: 100)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--page-token", flags->page_token, "Go on where an earlier page ended");
  command->add_flag("--all", flags->all, "Every page (--json does so unless it is asked for a page)");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("history", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return History(*flags, connection); });
  });
}

}  // namespace pawl
