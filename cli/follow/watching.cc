#include "cli/follow/watching.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "base/sync/steady_time.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/requests.h"
#include "cli/follow/follow.h"
#include "cli/follow/waits.h"
#include "cli/text/campaign_text.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

// A verification of an ended campaign is leased at once where a worker can take it.
constexpr absl::Duration kUnclaimed = absl::Seconds(1);

// Whether all that is left of an ended campaign is a verification that no worker has taken.
bool WaitsForVerificationOnly(CampaignClient& client, const std::string& campaign) {
  const absl::StatusOr<v1::Campaign> now = client.GetCampaign(campaign);
  if (!now.ok() || !now->has_end_time() || !now->verifying()) return false;
  const absl::StatusOr<v1::ListWorkersResponse> workers = client.ListWorkers(/*gone_too=*/false);
  if (!workers.ok()) return false;
  for (const v1::Worker& worker : workers->workers()) {
    for (const std::string& trial : worker.trials()) {
      if (absl::StartsWith(trial, campaign + "/")) return false;
    }
  }
  return true;
}

absl::Status NobodyRunsIt(const std::string& campaign, const Settings& settings) {
  v1::ErrorDetail detail;
  detail.set_fix(absl::StrCat("start one with `pawl-orchestrator --listen ADDRESS --database ",
                              settings.database.string(), "`, and a pawl-worker"));
  return WithDetail(
      absl::FailedPreconditionError(absl::StrCat(campaign, " has not ended, but no orchestrator is running")), detail);
}

}  // namespace

absl::Status PrintSummary(Connection& connection, const v1::Campaign& campaign) {
  std::vector<v1::Iteration> path;
  if (campaign.has_best()) {
    absl::StatusOr<std::vector<v1::Iteration>> kept = KeptPath(connection, campaign.name(), campaign.best());
    if (!kept.ok()) return kept.status();
    path = *std::move(kept);
  }
  std::fputs(SummaryText(campaign, path).c_str(), stdout);
  return absl::OkStatus();
}

absl::StatusOr<int> WatchToTheEnd(Connection& connection, const std::string& campaign, const WatchingOptions& options) {
  NoteInterrupts();
  EventPrinter printer(options.printer);
  printer.set_without_worker(absl::StrCat("no worker is registered; to start one: pawl-worker --orchestrator ",
                                          connection.address(), " --device auto"));
  ProposalWait wait(campaign, options.flags);
  WorkerWait worker_wait(campaign, options.worker_patience);
  bool no_worker = false, unclaimed = false;
  SteadyTime heard = SteadyNow();  // of an event, or asked what is left
  FollowOptions follow;
  follow.after_sequence = options.after_sequence;
  follow.see = [&](const v1::WatchCampaignResponse& message) {
    heard = SteadyNow();
    printer.See(message, heard);
    return true;
  };
  follow.tick = [&] {
    const SteadyTime tick = SteadyNow();
    if (tick - heard >= kUnclaimed) {
      heard = tick;
      unclaimed = WaitsForVerificationOnly(connection.client(), campaign);
      if (unclaimed) return absl::CancelledError("a verification waits for a worker");
    }
    if (printer.wants_campaign(tick)) {
      if (absl::StatusOr<v1::Campaign> now = connection.client().GetCampaign(campaign); now.ok())
        printer.See(*now, tick);
    }
    printer.Tick(tick);
    if (const std::optional<std::string> line = wait.Look(connection.client(), tick)) printer.Say(*line);
    if (options.worker_patience < absl::InfiniteDuration()) {
      absl::Status looked = worker_wait.Look(connection.client(), tick);
      no_worker = !looked.ok();
      if (no_worker) return looked;
    }
    if (!connection.own()) return absl::OkStatus();
    absl::StatusOr<v1::Campaign> now = connection.client().GetCampaign(campaign);
    if (!now.ok() || now->has_end_time()) return absl::OkStatus();  // the rest of its events is on the way
    return NobodyRunsIt(campaign, connection.settings());
  };
  follow.say = [&](const std::string& line) { printer.Say(line); };
  follow.reconnected = [&] { printer.Say(absl::StrCat("reconnected to the orchestrator at ", connection.address())); };
  const absl::Status status = Follow(connection, campaign, follow);
  printer.End();
  if (Interrupted()) {
    std::fprintf(stderr, "%s continues; `pawl watch %s` follows it again\n", campaign.c_str(),
                 ShortName(campaign).c_str());
    return kInterrupted;
  }
  if (no_worker) {
    Fail("submit", status);
    return kNoWorker;
  }
  if (unclaimed) {
    std::fprintf(stderr, "%s has ended; a verification of it waits for a worker\n", campaign.c_str());
  } else if (!status.ok()) {
    return status;
  }
  absl::StatusOr<v1::Campaign> ended =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(campaign); });
  if (!ended.ok()) return ended.status();
  if (options.summary_json) PrintJsonLine(*ended, /*every_field=*/true);
  if (options.summary && !options.summary_json) {
    if (absl::Status printed = PrintSummary(connection, *ended); !printed.ok()) return printed;
  }
  return ExitCodeOf(*ended);
}

}  // namespace pawl
