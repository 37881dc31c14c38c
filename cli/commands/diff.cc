// `pawl diff`: what differs between two iterations, or between two campaigns and their best variants.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/text/differences.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"

namespace pawl {
namespace {

struct DiffFlags {
  ConnectionFlags connection;
  std::string campaign, a, b;
  bool json = false;
};

int Print(const Differences& differences, const std::string& first, const std::string& second) {
  if (differences.empty()) {
    std::printf("%s and %s do not differ\n", first.c_str(), second.c_str());
  } else {
    std::fputs(differences.TableText(first, second, TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(),
               stdout);
  }
  return kDone;
}

absl::StatusOr<int> DiffIterations(const DiffFlags& flags, const std::string& first, const std::string& second,
                                   Connection& connection) {
  absl::StatusOr<v1::Iteration> a = connection.Ask([&](CampaignClient& client) { return client.GetIteration(first); });
  if (!a.ok()) return a.status();
  absl::StatusOr<v1::Iteration> b = connection.Ask([&](CampaignClient& client) { return client.GetIteration(second); });
  if (!b.ok()) return b.status();
  if (flags.json) {
    PrintJsonLine(*a);
    PrintJsonLine(*b);
    return kDone;
  }
  Differences differences;
  differences.Iterations(*a, *b);
  return Print(differences, absl::StrCat("iteration ", a->number()), absl::StrCat("iteration ", b->number()));
}

absl::StatusOr<int> DiffCampaigns(const DiffFlags& flags, const std::string& first, const std::string& second,
                                  Connection& connection) {
  absl::StatusOr<v1::Campaign> a = connection.Ask([&](CampaignClient& client) { return client.GetCampaign(first); });
  if (!a.ok()) return a.status();
  absl::StatusOr<v1::Campaign> b = connection.Ask([&](CampaignClient& client) { return client.GetCampaign(second); });
  if (!b.ok()) return b.status();
  if (flags.json) {
    PrintJsonLine(*a, /*every_field=*/true);
    PrintJsonLine(*b, /*every_field=*/true);
    return kDone;
  }
  Differences differences;
  differences.Campaigns(*a, *b);
  if (a->has_best() && b->has_best()) {
    absl::StatusOr<v1::BestVariant> one =
        connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(first); });
    if (!one.ok()) return one.status();
    absl::StatusOr<v1::BestVariant> other =
        connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(second); });
    if (!other.ok()) return other.status();
    one->mutable_iteration()->clear_device();  // said of the campaigns
    other->mutable_iteration()->clear_device();
    differences.Iterations(one->iteration(), other->iteration());
  }
  return Print(differences, first, second);
}

int Diff(const DiffFlags& flags) {
  const bool iterations = !flags.b.empty();
  const absl::StatusOr<std::string> first =
      iterations ? ReadIterationName(flags.campaign, flags.a) : absl::StatusOr<std::string>(flags.campaign);
  const absl::StatusOr<std::string> second =
      iterations ? ReadIterationName(flags.campaign, flags.b) : ReadCampaignName(flags.a);
  for (const absl::StatusOr<std::string>* name : {&first, &second}) {
    if (name->ok()) continue;
    Fail("diff", name->status());
    return kWrongUsage;
  }
  return WithConnection("diff", flags.connection, Need::kCampaigns, [&](Connection& connection) {
    return iterations ? DiffIterations(flags, *first, *second, connection)
                      : DiffCampaigns(flags, *first, *second, connection);
  });
}

}  // namespace

void AddDiff(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* command = app.add_subcommand("diff", "Compare two iterations, or two campaigns: only what differs");
  command->group(kLooking)->footer(
      "Examples: pawl diff 7 0 12     iterations 0 and 12 of campaign 7\n"
      "          pawl diff 7 8        campaigns 7 and 8, and their best variants\n"
      "The ratio is the second value over the first. With --json: both objects, one per line.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("A", flags->a, "An iteration of CAMPAIGN; without B, another campaign")->required();
  command->add_option("B", flags->b, "Another iteration of CAMPAIGN");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Diff(*flags); });
}

}  // namespace pawl
