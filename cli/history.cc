// `pawl history`: the iterations of a campaign, a page at a time.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/all_iterations.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/flags.h"
#include "cli/iteration_columns.h"
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
  std::string verdict, variable, finding, sort, columns;
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

// What is listed, and how; the orchestrator sorts by number and speedup, this command by anything else.
struct Listing {
  std::vector<IterationColumn> columns;
  std::optional<IterationColumn> sort;
  bool descending = false;
};

constexpr char kDefaultColumns[] = "number,verdict,change,over-parent,over-start,over-baseline,time,reason";

bool IsColumn(const std::string& name) {
  const auto& list = IterationColumnList();
  return std::any_of(list.begin(), list.end(), [&](const IterationColumn& column) { return column.name == name; });
}

// The campaign's variables, as its first iteration has them: a column may be one.
absl::StatusOr<std::vector<std::string>> Variables(const std::string& campaign, Connection& connection) {
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  request.set_page_size(1);
  absl::StatusOr<v1::ListIterationsResponse> page =
      connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
  if (!page.ok()) return page.status();
  std::vector<std::string> names;
  for (const v1::Iteration& iteration : page->iterations()) {
    for (const auto& [name, value] : iteration.variant()) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Listing> ReadListing(const Flags& flags, Connection& connection) {
  Listing listing;
  const std::vector<std::string> names = absl::StrSplit(flags.columns.empty() ? kDefaultColumns : flags.columns, ',');
  const bool by_server =
      flags.sort.empty() || flags.sort == "number" || flags.sort == "-number" || flags.sort == "speedup";
  listing.descending = absl::StartsWith(flags.sort, "-");
  const std::string sort = by_server ? "" : flags.sort.substr(listing.descending ? 1 : 0);
  std::vector<std::string> variables;
  if (!std::all_of(names.begin(), names.end(), IsColumn) || (!by_server && !IsColumn(sort))) {
    absl::StatusOr<std::vector<std::string>> found = Variables(flags.campaign, connection);
    if (!found.ok()) return found.status();
    variables = *std::move(found);
  }
  absl::StatusOr<std::vector<IterationColumn>> columns = ReadIterationColumns(names, variables);
  if (!columns.ok()) return columns.status();
  listing.columns = *std::move(columns);
  if (by_server) return listing;
  absl::StatusOr<std::vector<IterationColumn>> by = ReadIterationColumns({sort}, variables);
  if (!by.ok()) return by.status();
  if (by->front().key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("nothing can be sorted by ", sort, ": it is no number"));
  }
  listing.sort = std::move(by->front());
  return listing;
}

// The command that prints the next page: a page token holds for the same filter and order only.
std::string NextCommand(const Flags& flags, const std::string& token) {
  std::string command = absl::StrCat("pawl history ", ShortName(flags.campaign));
  if (flags.kept) command += " --kept";
  if (!flags.verdict.empty()) absl::StrAppend(&command, " --verdict ", flags.verdict);
  if (!flags.variable.empty()) absl::StrAppend(&command, " --variable ", flags.variable);
  if (!flags.finding.empty()) absl::StrAppend(&command, " --finding ", flags.finding);
  if (!flags.sort.empty()) absl::StrAppend(&command, " --sort ", flags.sort);
  if (!flags.columns.empty()) absl::StrAppend(&command, " --columns ", flags.columns);
  if (flags.page_size > 0) absl::StrAppend(&command, " --page-size ", flags.page_size);
  if (flags.json) command += " --json";
  return absl::StrCat(command, FlagsText(flags.connection), " --page-token ", token);
}

// People are spared what could not be tried, unless they ask for rejected ones; programs get everything. Answers how
// many were left out.
template <typename Iterations>
int PrintPage(const Iterations& iterations, const std::vector<IterationColumn>& columns, const Flags& flags) {
  const bool json = flags.json;
  int left_out = 0;
  std::vector<Table::Column> heads;
  for (const IterationColumn& column : columns) heads.push_back(column.head);
  Table table(std::move(heads));
  for (const v1::Iteration& iteration : iterations) {
    if (json) {
      std::printf("%s\n", JsonRow(iteration, {"variant", "reason", "comparison", "time_us", "speedup_over_parent",
                                              "speedup_over_start", "speedup_over_baseline", "stages", "device"})
                              .c_str());
    } else if (flags.verdict.empty() && IsUntried(iteration)) {
      ++left_out;
    } else {
      std::vector<std::string> cells;
      for (const IterationColumn& column : columns) cells.push_back(column.cell(iteration));
      table.Add(std::move(cells));
    }
  }
  if (!table.empty()) std::fputs(table.Text(TerminalWidth(STDOUT_FILENO)).c_str(), stdout);
  return left_out;
}

void SayWhatWasLeftOut(int left_out) {
  if (left_out == 0) return;
  std::fprintf(stderr, "%d changes that the recording lacks are left out (--verdict rejected shows them)\n", left_out);
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

// Everything, in an order that is this command's own.
absl::Status PrintSorted(const Listing& listing, const v1::ListIterationsRequest& request, const Flags& flags,
                         Connection& connection) {
  absl::StatusOr<std::vector<v1::Iteration>> all = AllIterations(connection, request);
  if (!all.ok()) return all.status();
  SortIterations(*listing.sort, listing.descending, &*all);
  if (flags.page_size > 0 && all->size() > static_cast<size_t>(flags.page_size)) {
    all->resize(static_cast<size_t>(flags.page_size));
  }
  SayWhatWasLeftOut(PrintPage(*all, listing.columns, flags));
  if (all->empty() && !flags.json) std::fprintf(stderr, "no iterations\n");
  return absl::OkStatus();
}

absl::StatusOr<int> History(const Flags& flags, Connection& connection) {
  absl::StatusOr<Listing> listing = ReadListing(flags, connection);
  if (absl::IsInvalidArgument(listing.status())) {
    Fail("history", listing.status());
    return kWrongUsage;
  }
  if (!listing.ok()) return listing.status();
  if (!flags.json) {
    if (absl::Status status = PrintHead(connection, flags.campaign); !status.ok()) return status;
  }
  v1::ListIterationsRequest request = Request(flags);
  for (const IterationColumn& column : listing->columns) {
    if (column.metric) request.add_metrics(column.name);
  }
  if (listing->sort && listing->sort->metric) request.add_metrics(listing->sort->name);
  if (listing->sort) {
    if (absl::Status status = PrintSorted(*listing, request, flags, connection); !status.ok()) return status;
    return kDone;
  }
  // A program asks for everything unless it asks for a page; its lines have no place for a token.
  const bool all = flags.all || (flags.json && flags.page_size == 0 && flags.page_token.empty());
  if (all && flags.page_size == 0) request.set_page_size(1000);
  bool any = false;
  int left_out = 0;
  do {
    absl::StatusOr<v1::ListIterationsResponse> page =
        connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
    if (!page.ok()) return page.status();
    left_out += PrintPage(page->iterations(), listing->columns, flags);
    any = any || page->iterations_size() > 0;
    request.set_page_token(page->next_page_token());
  } while (all && !request.page_token().empty());
  std::fflush(stdout);
  SayWhatWasLeftOut(left_out);
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
      "          pawl history 7 --columns number,change,finding,TILE_M,registers,occupancy,time --sort time\n"
      "          pawl history 7 --json | jq -r '[.number, .verdict, .speedupOverStart] | @tsv'");
  AddCampaign(*command, &flags->campaign);
  CLI::Option* kept = command->add_flag("--kept", flags->kept, "Only what was kept");
  command->add_option("--verdict", flags->verdict, "Only this verdict: kept, reverted or rejected")
      ->check(CLI::IsMember({"kept", "reverted", "rejected"}))
      ->excludes(kept);
  command->add_option("--variable", flags->variable, "Only changes of this variable");
  command->add_option("--finding", flags->finding, "Only changes that served this rule's finding");
  command
      ->add_option("--sort", flags->sort,
                   "number (default), -number (newest first), speedup (best first), or by any column that is a number, "
                   "- before it for the largest first")
      ->type_name("COLUMN");
  command
      ->add_option("--columns", flags->columns,
                   absl::StrCat("Which, with commas: ", IterationColumnNames(),
                                ", any variable, and any metric of metrics.toml"))
      ->type_name("NAMES");
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
