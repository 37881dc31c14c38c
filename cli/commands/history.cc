// `pawl history`: the iterations of a campaign, a page at a time.
#include "cli/text/history.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names/resource_name.h"
#include "base/names/spelling.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/requests.h"
#include "cli/text/failure.h"
#include "cli/text/iteration_line.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "profiles/diagnosis.h"
#include "profiles/metrics.h"

namespace pawl {
namespace {

struct HistoryFlags {
  ConnectionFlags connection;
  std::string campaign;
  bool kept = false;
  std::string verdict, variable, finding, sort, columns;
  int page_size = 0;
  std::string page_token;
  bool all = false;
  bool json = false;
};

v1::ListIterationsRequest Request(const HistoryFlags& flags) {
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

constexpr int kDefaultPage = 100;
constexpr int kMostAtOnce = 1000;
constexpr int kLookAhead = 200;

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

// Whether the orchestrator knows what is neither a column nor a variable: its metrics.toml may be another one.
absl::Status CheckMetrics(const std::vector<std::string>& names, const std::vector<std::string>& variables,
                          const std::string& campaign, Connection& connection) {
  std::vector<std::string> known = variables;
  for (const IterationColumn& column : IterationColumnList()) known.push_back(column.name);
  for (const Metric& metric : Metrics::Default().all()) known.push_back(metric.name);
  for (const std::string& name : names) {
    if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    v1::ListIterationsRequest request;
    request.set_campaign(campaign);
    request.set_page_size(1);
    request.add_metrics(name);
    const absl::Status asked =
        connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); }).status();
    if (!absl::IsInvalidArgument(asked)) return asked;
    v1::ErrorDetail detail;
    detail.set_fix("`pawl history --help` lists the columns; a variable or a metric can also be a column");
    return WithDetail(absl::InvalidArgumentError(absl::StrCat("there is no column ", name, Suggestion(name, known))),
                      detail);
  }
  return absl::OkStatus();
}

// A rule is known that is built in, or that an iteration of the campaign names: its profiles may be other ones.
absl::Status CheckRule(const std::string& rule, const std::string& campaign, Connection& connection) {
  std::vector<std::string> known;
  for (const Rule& each : DecisionTree::Default().rules()) known.push_back(each.name);
  if (rule.empty() || std::find(known.begin(), known.end(), rule) != known.end()) return absl::OkStatus();
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  request.set_page_size(1);
  request.set_finding(rule);
  absl::StatusOr<v1::ListIterationsResponse> served =
      connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
  if (!served.ok()) return served.status();
  if (!served->iterations().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no rule ", rule, NearestNames(rule, known)));
}

absl::StatusOr<Listing> ReadListing(const HistoryFlags& flags, Connection& connection) {
  Listing listing;
  const std::vector<std::string> names = absl::StrSplit(flags.columns.empty() ? kHistoryColumns : flags.columns, ',');
  const bool by_server =
      flags.sort.empty() || flags.sort == "number" || flags.sort == "-number" || flags.sort == "speedup";
  listing.descending = absl::StartsWith(flags.sort, "-");
  const std::string sort = by_server ? "" : flags.sort.substr(listing.descending ? 1 : 0);
  std::vector<std::string> variables;
  if (!std::all_of(names.begin(), names.end(), IsColumn) || (!by_server && !IsColumn(sort)) ||
      !flags.variable.empty()) {
    absl::StatusOr<std::vector<std::string>> found = Variables(flags.campaign, connection);
    if (!found.ok()) return found.status();
    variables = *std::move(found);
    std::sort(variables.begin(), variables.end());
  }
  if (!flags.variable.empty() && !variables.empty() &&
      std::find(variables.begin(), variables.end(), flags.variable) == variables.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.campaign, " has no variable ", flags.variable, Expected(flags.variable, variables)));
  }
  if (absl::Status known = CheckRule(flags.finding, flags.campaign, connection); !known.ok()) return known;
  std::vector<std::string> asked = names;
  if (!by_server) asked.push_back(sort);
  if (absl::Status known = CheckMetrics(asked, variables, flags.campaign, connection); !known.ok()) return known;
  absl::StatusOr<std::vector<IterationColumn>> columns = ReadIterationColumns(names, variables);
  if (!columns.ok()) return columns.status();
  listing.columns = *std::move(columns);
  if (!flags.columns.empty()) {
    for (IterationColumn& column : listing.columns) column.head.dispensable = 0;
  }
  if (by_server) return listing;
  absl::StatusOr<std::vector<IterationColumn>> by = ReadIterationColumns({sort}, variables);
  if (!by.ok()) return by.status();
  if (by->front().key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("can't sort by ", sort, ": it is not a number"));
  }
  listing.sort = std::move(by->front());
  return listing;
}

// The command that prints the next page: a page token holds for the same filter and order only.
std::string NextCommand(const HistoryFlags& flags, const std::string& token) {
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

// People are spared what could not be tried, unless they ask for rejected ones; programs get everything.
bool IsShown(const v1::Iteration& iteration, const HistoryFlags& flags) {
  return flags.json || !flags.verdict.empty() || !iteration.untried();
}

// Answers the columns that the terminal has no room for.
std::vector<std::string> PrintRows(const std::vector<v1::Iteration>& iterations,
                                   const std::vector<IterationColumn>& columns, bool json) {
  if (json) {
    for (const v1::Iteration& iteration : iterations) std::printf("%s\n", HistoryJson(iteration).c_str());
    return {};
  }
  if (iterations.empty()) return {};
  const Table table = HistoryTable(iterations, columns);
  const int width = TerminalWidth(STDOUT_FILENO);
  std::fputs(table.Text(width, TakesColor(STDOUT_FILENO)).c_str(), stdout);
  return table.LeftOut(width);
}

// As many iterations as a page is to have, all of which are shown.
struct Page {
  std::vector<v1::Iteration> rows;
  int left_out = 0;
  std::string token;  // of what comes next; empty where nothing that is shown does
};

absl::StatusOr<Page> ReadPage(v1::ListIterationsRequest request, int size, const HistoryFlags& flags,
                              Connection& connection) {
  Page page;
  while (true) {
    const int wanted = size - static_cast<int>(page.rows.size());
    request.set_page_size(wanted > 0 ? wanted : kLookAhead);
    absl::StatusOr<v1::ListIterationsResponse> read =
        connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
    if (!read.ok()) return read.status();
    const auto shown = [&](const v1::Iteration& iteration) { return IsShown(iteration, flags); };
    if (wanted <= 0 && std::any_of(read->iterations().begin(), read->iterations().end(), shown)) return page;
    for (v1::Iteration& iteration : *read->mutable_iterations()) {
      if (shown(iteration)) {
        page.rows.push_back(std::move(iteration));
      } else {
        ++page.left_out;
      }
    }
    const bool full = static_cast<int>(page.rows.size()) >= size;
    if (wanted > 0) page.token = read->next_page_token();
    request.set_page_token(read->next_page_token());
    if (request.page_token().empty()) {
      page.token.clear();
      return page;
    }
    // Where some are left out, what follows the last row may be, too.
    if (full && wanted > 0 && (flags.json || !flags.verdict.empty() || request.verdict() == v1::KEPT)) return page;
  }
}

absl::Status PrintHead(Connection& connection, const std::string& name) {
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(name); });
  if (!campaign.ok()) return campaign.status();
  std::printf("%s\n", HistoryHead(name, *campaign).c_str());
  return absl::OkStatus();
}

// Everything, in an order that is this command's own.
absl::StatusOr<Page> ReadSorted(const Listing& listing, const v1::ListIterationsRequest& request,
                                const HistoryFlags& flags, Connection& connection) {
  absl::StatusOr<std::vector<v1::Iteration>> all = AllIterations(connection, request);
  if (!all.ok()) return all.status();
  Page page;
  page.rows = *std::move(all);
  page.left_out = static_cast<int>(
      std::erase_if(page.rows, [&](const v1::Iteration& iteration) { return !IsShown(iteration, flags); }));
  SortIterations(*listing.sort, listing.descending, &page.rows);
  if (flags.page_size > 0 && page.rows.size() > static_cast<size_t>(flags.page_size)) {
    page.rows.resize(static_cast<size_t>(flags.page_size));
  }
  return page;
}

absl::StatusOr<int> History(const HistoryFlags& flags, Connection& connection) {
  absl::StatusOr<Listing> listing = ReadListing(flags, connection);
  if (absl::IsInvalidArgument(listing.status())) {
    Fail("history", listing.status());
    return kWrongUsage;
  }
  if (!listing.ok()) return listing.status();
  v1::ListIterationsRequest request = Request(flags);
  for (const IterationColumn& column : listing->columns) {
    if (column.metric) request.add_metrics(column.name);
  }
  if (listing->sort && listing->sort->metric) request.add_metrics(listing->sort->name);
  // A program asks for everything unless it asks for a page; its lines have no place for a token.
  const bool all = flags.all || (flags.json && flags.page_size == 0 && flags.page_token.empty());
  const int size = flags.page_size > 0 ? flags.page_size : all ? kMostAtOnce : kDefaultPage;
  // Nothing is printed before the first answer: what is asked for may be refused.
  absl::StatusOr<Page> page =
      listing->sort ? ReadSorted(*listing, request, flags, connection) : ReadPage(request, size, flags, connection);
  if (!page.ok()) return page.status();
  if (!flags.json) {
    if (absl::Status status = PrintHead(connection, flags.campaign); !status.ok()) return status;
  }
  bool any = !page->rows.empty();
  int left_out = page->left_out;
  std::vector<std::string> no_room = PrintRows(page->rows, listing->columns, flags.json);
  while (all && !page->token.empty()) {
    request.set_page_token(page->token);
    page = ReadPage(request, size, flags, connection);
    if (!page.ok()) return page.status();
    any = any || !page->rows.empty();
    left_out += page->left_out;
    no_room = PrintRows(page->rows, listing->columns, flags.json);
  }
  std::fflush(stdout);
  std::fputs(HistoryFoot(left_out, no_room).c_str(), stderr);
  if (!any && !flags.json) {
    std::fprintf(stderr, "No matching iterations%s\n", flags.page_token.empty() ? "" : " on this page");
  }
  if (!page->token.empty()) std::fprintf(stderr, "more: %s\n", NextCommand(flags, page->token).c_str());
  return kDone;
}

}  // namespace

void AddHistory(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<HistoryFlags>();
  CLI::App* command = app.add_subcommand("history", "List a campaign's iterations with verdict, time and speedups");
  command->group(kLooking)->footer(
      "Examples: pawl history 7\n"
      "          pawl history 7 --kept --sort speedup\n"
      "          pawl history 7 --columns number,change,registers,time --sort time\n"
      "          pawl history 7 --json | jq -r '[.number, .verdict, .timeUs] | @tsv'");
  AddCampaign(*command, &flags->campaign);
  CLI::Option* kept = command->add_flag("--kept", flags->kept, "Show only kept iterations");
  command->add_option("--verdict", flags->verdict, "Show only iterations with this verdict")
      ->check(CLI::IsMember({"kept", "reverted", "rejected"}))
      ->excludes(kept);
  command->add_option("--variable", flags->variable, "Show only changes of this variable");
  command->add_option("--finding", flags->finding, "Show only changes that addressed a finding of this rule");
  command
      ->add_option(
          "--sort", flags->sort,
          "number (default), -number (newest first), speedup (fastest first), or any numeric column; a leading - "
          "sorts the largest first")
      ->type_name("COLUMN");
  command
      ->add_option("--columns", flags->columns,
                   absl::StrCat("Columns to show, separated by commas: ", IterationColumnNames(),
                                ", any variable, any metric of metrics.toml"))
      ->type_name("NAMES");
  command->add_option("--page-size", flags->page_size, "Iterations per page, 1 to 1000 (default: 100)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--page-token", flags->page_token, "Continue after an earlier page");
  command->add_flag("--all", flags->all, "Show all pages (default with --json)");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("history", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return History(*flags, connection); });
  });
}

}  // namespace pawl
