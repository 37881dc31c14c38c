// `pawl explain`: why a campaign did what it did.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/requests.h"
#include "cli/text/explanation.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/why_not.h"

namespace pawl {
namespace {

struct ExplainFlags {
  ConnectionFlags connection;
  std::string campaign, iteration, why_not;
  bool all = false;
  bool json = false;
};

absl::StatusOr<v1::Iteration> GetIteration(Connection& connection, const std::string& name) {
  return connection.Ask([&](CampaignClient& client) { return client.GetIteration(name); });
}

absl::StatusOr<std::vector<v1::Iteration>> Iterations(Connection& connection, const std::string& campaign) {
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  return AllIterations(connection, request);
}

absl::StatusOr<int> ExplainCampaign(const ExplainFlags& flags, Connection& connection) {
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(flags.campaign); });
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<std::vector<v1::Iteration>> iterations = Iterations(connection, flags.campaign);
  if (!iterations.ok()) return iterations.status();
  if (!flags.json) {
    std::fputs(CampaignExplanation(*campaign, *iterations, ReadingWidth(STDOUT_FILENO)).c_str(), stdout);
    return kDone;
  }
  for (const v1::Iteration& listed : *iterations) {
    absl::StatusOr<v1::Iteration> whole = GetIteration(connection, listed.name());
    if (!whole.ok()) return whole.status();
    PrintJsonLine(*whole);
  }
  return kDone;
}

absl::StatusOr<int> ExplainIteration(const ExplainFlags& flags, const std::string& name, Connection& connection) {
  absl::StatusOr<v1::Iteration> iteration = GetIteration(connection, name);
  if (!iteration.ok()) return iteration.status();
  if (flags.json) {
    PrintJsonLine(*iteration);
  } else {
    std::fputs(IterationExplanation(*iteration, flags.all, ReadingWidth(STDOUT_FILENO)).c_str(), stdout);
  }
  return kDone;
}

// Of the iteration that was asked about, or of the latest that chose something.
absl::StatusOr<int> ExplainWhyNot(const ExplainFlags& flags, std::string name, Connection& connection) {
  absl::StatusOr<std::vector<v1::Iteration>> iterations = Iterations(connection, flags.campaign);
  if (!iterations.ok()) return iterations.status();
  if (name.empty()) {
    for (const v1::Iteration& iteration : *iterations) {
      if (iteration.has_parent()) name = iteration.name();
    }
    if (name.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(flags.campaign, " has chosen no change yet"));
    }
  }
  absl::StatusOr<v1::Iteration> decision = GetIteration(connection, name);
  if (!decision.ok()) return decision.status();
  if (!decision->has_parent()) {
    Fail("explain", absl::InvalidArgumentError(absl::StrCat(name, " is the start variant: no change was chosen")));
    return kWrongUsage;
  }
  absl::StatusOr<v1::BestVariant> best =
      connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(flags.campaign); });
  if (!best.ok()) return best.status();
  absl::StatusOr<std::string> answer =
      WhyNot(flags.why_not, *decision, *iterations, best->bundle(), ReadingWidth(STDOUT_FILENO));
  if (!answer.ok()) {
    Fail("explain", answer.status());
    return kWrongUsage;
  }
  std::fputs(answer->c_str(), stdout);
  return kDone;
}

int Explain(const ExplainFlags& flags) {
  std::string name;
  if (!flags.iteration.empty()) {
    absl::StatusOr<std::string> whole = ReadIterationName(flags.campaign, flags.iteration);
    if (!whole.ok()) {
      Fail("explain", whole.status());
      return kWrongUsage;
    }
    name = *std::move(whole);
  }
  return WithConnection("explain", flags.connection, Need::kCampaigns, [&](Connection& connection) {
    if (!flags.why_not.empty()) return ExplainWhyNot(flags, name, connection);
    return name.empty() ? ExplainCampaign(flags, connection) : ExplainIteration(flags, name, connection);
  });
}

}  // namespace

void AddExplain(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command =
      app.add_subcommand("explain", "Explain a campaign, or why an iteration was chosen and its outcome");
  command->group(kLooking)->footer(
      "Examples: pawl explain 7\n"
      "          pawl explain 7 12\n"
      "          pawl explain 7 12 --why-not TILE_M=16\n"
      "Changes are ranked by a posterior of their log speedup over the best variant: +0.693 is twice as fast. `mean` "
      "and `sd` are its mean and standard deviation. The mean is the sum of `rules` and `patterns`, which are known "
      "before the campaign, and `model`, which the campaign's measurements add. `improvement` is the expected "
      "improvement over the best variant: a slowdown counts as 0, and it includes the probability that the change "
      "passes every check and what a second change may add. The change with the most expected improvement per second "
      "of its trial is chosen.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("ITERATION", flags->iteration, "Iteration: 12 or campaigns/7/iterations/12");
  CLI::Option* why_not = command
                             ->add_option("--why-not", flags->why_not,
                                          "Explain why this change was not chosen (default: in the latest iteration)")
                             ->type_name("VARIABLE=VALUE")
                             ->check(CLI::Validator(CheckChange, ""));
  command->add_flag("--all", flags->all, "List every change that was considered, not only the highest ranked");
  command->add_flag("--json", flags->json, "Print JSON for programs: complete iterations, one object per line")
      ->excludes(why_not);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Explain(*flags); });
}

}  // namespace pawl
