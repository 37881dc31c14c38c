#include "cli/follow/campaign_run.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/requests.h"
#include "cli/connect/settings.h"
#include "cli/follow/follow.h"
#include "cli/follow/watching.h"
#include "cli/text/campaign_text.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"

namespace pawl {
namespace {

constexpr absl::Duration kRunLook = absl::Milliseconds(500);
// A registered worker asks for a trial at once; one that has not taken the campaign's by then can't.
constexpr absl::Duration kRunPatience = absl::Seconds(5);
constexpr absl::Duration kGrace = absl::Seconds(10);
constexpr absl::Duration kReport = absl::Seconds(5);  // to be written in; a page takes far less than a second
constexpr absl::Duration kReportLook = absl::Milliseconds(20);
constexpr int kMaxRestarts = 3;
constexpr char kSelf[] = "pawl";  // the author of what the orchestrator does by itself

// A page of the same number that a database before this one left there is not it.
bool IsOf(const std::filesystem::path& file, const v1::Campaign& campaign) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  if (error) return false;
  const auto since_1970 = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count() >= campaign.create_time().seconds();
}

// The page that the database's orchestrator writes of a campaign that has ended; waits a little for it. Nothing: it
// writes none, or somewhere else.
std::optional<std::filesystem::path> AwaitReport(const Settings& settings, const v1::Campaign& campaign,
                                                 absl::Duration patience) {
  const std::optional<std::string> folder = FromEnvironment("PAWL_REPORTS");
  if (!settings.orchestrator.empty() || folder == "none") return std::nullopt;
  const std::filesystem::path file =
      (folder ? std::filesystem::path(*folder) : settings.database.parent_path() / "reports") /
      absl::StrCat("campaign-", ShortName(campaign.name()), ".html");
  for (const SteadyTime deadline = SteadyNow() + patience;; absl::SleepFor(kReportLook)) {
    if (IsOf(file, campaign)) return file;
    if (SteadyNow() >= deadline) return std::nullopt;
  }
}

}  // namespace

CampaignRun::CampaignRun(RunOptions options)
    : options_(std::move(options)), worker_log_(DaemonLog(options_.settings, "worker")), printer_(options_.printer) {
  printer_.set_without_worker(absl::StrCat("the worker is starting; its log: ", worker_log_.string()));
}

absl::StatusOr<int> CampaignRun::Run() {
  NoteInterrupts();
  absl::Status status = Start();
  if (status.ok()) status = Follow();
  printer_.End();
  if (Interrupted()) {
    Cancel("interrupted");
    return Conclude(kInterrupted);
  }
  if (no_worker_) {
    Fail("run", status);
    Cancel("no worker could run it");
    return Conclude(kNoWorker);
  }
  if (!status.ok()) return status;
  if (!paused_.empty() && only_proposals_) {
    absl::StatusOr<int> exit_code = Conclude(kPaused);
    const std::string rest = absl::StrCat(" ", ShortName(campaign_), options_.flags);
    v1::ErrorDetail detail;
    const bool contract = options_.contract_alone;
    const std::string more = contract ? "; or add device code and [[launch]] to the bundle, and run it again"
                                      : "; or add [[variable]] tables to kernel.toml, as pawl init drafts them, and "
                                        "run it again";
    detail.set_fix(absl::StrCat(
        "with a pawl-orchestrator on this database and a pawl-worker: pawl resume", rest,
        contract ? ", then propose the device code with pawl propose" : ", then propose edits with pawl propose", rest,
        " --patch FILE --name NAME, or let an agent do it: pawl agent", rest, more));
    Fail("run", WithDetail(absl::FailedPreconditionError(
                               contract ? absl::StrCat(options_.bundle.name(),
                                                       " is a contract alone, without device code: ", campaign_,
                                                       " waits for proposals, and the first that passes validation is "
                                                       "the start")
                                        : absl::StrCat("the start variant is measured, and ", options_.bundle.name(),
                                                       " has no variables that Pawl could change: ", campaign_,
                                                       " waits for proposals")),
                           detail));
    return exit_code;
  }
  if (!paused_.empty()) {
    v1::ErrorDetail detail;
    detail.set_fix(absl::StrCat("remove the cause; then, with a pawl-orchestrator on this database and a pawl-worker, ",
                                "pawl resume ", ShortName(campaign_), options_.flags, "; or pawl cancel ",
                                ShortName(campaign_), options_.flags));
    Fail("run",
         WithDetail(absl::FailedPreconditionError(absl::StrCat(campaign_, " paused itself: ", paused_)), detail));
    return Conclude(kPaused);
  }
  return Conclude(kDone);
}

absl::Status CampaignRun::Start() {
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connection::Open(options_.settings, Need::kDatabase, DaemonLog(options_.settings, "orchestrator"));
  if (!connection.ok()) return connection.status();
  connection_ = *std::move(connection);
  SayWhatElseRuns();
  if (absl::Status status = StartWorker(); !status.ok()) return status;
  absl::StatusOr<v1::Campaign> campaign = SubmitBundle(*connection_, options_.bundle, options_.spec, Need::kDatabase,
                                                       [&](const std::string& line) { printer_.Say(line); });
  if (!campaign.ok()) return campaign.status();
  campaign_ = campaign->name();
  wait_.emplace(campaign_, options_.flags);
  return absl::OkStatus();
}

absl::Status CampaignRun::StartWorker() {
  worker_name_ = LocalWorkerName();
  absl::StatusOr<std::unique_ptr<Daemon>> worker = StartLocalWorker(
      options_.worker, connection_->address(), options_.settings.credentials, worker_name_, worker_log_);
  if (!worker.ok()) return worker.status();
  worker_ = *std::move(worker);
  return absl::OkStatus();
}

void CampaignRun::SayWhatElseRuns() {
  if (!connection_->own()) {
    printer_.Say(absl::StrCat("joining the orchestrator at ", connection_->address()));
    return;
  }
  if (const std::string& http = options_.settings.http; !http.empty()) {
    printer_.Say(absl::StrCat("dashboard at http://", absl::StrContains(http, ':') ? "" : "127.0.0.1:", http, "/"));
  }
  absl::StatusOr<v1::ListCampaignsResponse> page = connection_->client().ListCampaigns({});
  if (!page.ok()) return;  // what comes next says so
  for (const v1::Campaign& campaign : page->campaigns()) {
    if (campaign.state() != v1::WAITING && campaign.state() != v1::RUNNING) continue;
    printer_.Say(absl::StrCat(campaign.name(), " is unfinished and continues next to this one; `pawl cancel ",
                              ShortName(campaign.name()), "` cancels it"));
  }
}

absl::Status CampaignRun::Follow() {
  FollowOptions follow;
  follow.reconnect = Need::kDatabase;
  follow.see = [&](const v1::WatchCampaignResponse& message) {
    See(message);
    return paused_.empty();
  };
  follow.tick = [&] { return Tick(); };
  follow.say = [&](const std::string& line) { printer_.Say(line); };
  follow.reconnected = [&] {
    printer_.Say(absl::StrCat("reconnected to the orchestrator at ", connection_->address()));
    worker_ = nullptr;  // it knows the old address; the next tick starts another
  };
  return pawl::Follow(*connection_, campaign_, follow);
}

void CampaignRun::See(const v1::WatchCampaignResponse& message) {
  if (message.event().has_leased() && !leased_) {
    leased_ = true;
    if (options_.worker.device == "auto" && message.event().leased().replay()) {
      printer_.Say("no GPU found (`pawl doctor` says why): the times come from a recording");
    }
  }
  if (message.event().has_finished()) restarts_ = 0;
  // Nobody else is there to resume it. A pause that a person asked for ends when that person resumes it.
  if (message.event().has_paused() && message.event().paused().author() == kSelf) {
    paused_ = message.event().paused().reason();
  }
  printer_.See(message, SteadyNow());
}

absl::Status CampaignRun::Tick() {
  const SteadyTime now = SteadyNow();
  if (printer_.wants_campaign(now)) {
    absl::StatusOr<v1::Campaign> campaign = connection_->client().GetCampaign(campaign_);
    if (campaign.ok()) printer_.See(*campaign, now);
  }
  printer_.Tick(now);
  if (const std::optional<std::string> line = wait_->Look(connection_->client(), now)) printer_.Say(*line);
  if (worker_ == nullptr) return StartWorker();
  if (!worker_->alive()) return RestartWorker();
  const bool start_only = options_.bundle.variables().empty() && options_.spec.chooser().wait_seconds() == 0;
  if ((leased_ && !start_only) || now < next_look_) return absl::OkStatus();
  next_look_ = now + kRunLook;
  if (!leased_ && !options_.contract_alone) return LookWhatItWaitsFor(now);
  if (start_only) PauseBeforeProposals();
  return absl::OkStatus();
}

void CampaignRun::PauseBeforeProposals() {
  absl::StatusOr<v1::Campaign> campaign = connection_->client().GetCampaign(campaign_);
  if (!campaign.ok() || campaign->waiting_for() != v1::WAITING_FOR_PROPOSAL) return;
  v1::PauseCampaignRequest request;
  request.set_name(campaign_);
  request.set_author(kSelf);
  request.set_reason(options_.contract_alone
                         ? "there is no device code yet: it waits for proposals"
                         : "there are no variables that Pawl could change by itself: it waits for proposals");
  only_proposals_ = connection_->client().Pause(request).ok();  // the watch tells of it
}

absl::Status CampaignRun::RestartWorker() {
  const std::string obituary = worker_->Obituary();
  // A contract alone may wait for hours before it has anything to run.
  if ((leased_ || options_.contract_alone) && restarts_ < kMaxRestarts) {
    ++restarts_;
    printer_.Say(absl::StrCat(obituary, "\nrestarting it"));
    return StartWorker();
  }
  no_worker_ = true;
  v1::ErrorDetail detail;
  detail.set_fix(absl::StrCat("`pawl doctor` says what is missing on this machine; log: ", worker_log_.string()));
  return WithDetail(absl::FailedPreconditionError(obituary), detail);
}

absl::Status CampaignRun::LookWhatItWaitsFor(SteadyTime now) {
  absl::StatusOr<v1::Campaign> campaign = connection_->client().GetCampaign(campaign_);
  absl::StatusOr<v1::ListWorkersResponse> workers = connection_->client().ListWorkers(/*gone_too=*/false);
  if (!campaign.ok() || !workers.ok()) return absl::OkStatus();  // the watch finds out
  bool registered = false;
  for (const v1::Worker& worker : workers->workers()) {
    // One of several devices adds its own to the name.
    registered = registered || worker.name() == worker_name_ || absl::StartsWith(worker.name(), worker_name_ + "-");
  }
  if (!registered || campaign->state() != v1::WAITING || campaign->message().empty() || IsHeld(*campaign)) {
    waits_since_ = SteadyTime::InfiniteFuture();
    return absl::OkStatus();
  }
  if (waits_since_ == SteadyTime::InfiniteFuture()) waits_since_ = now;
  if (now - waits_since_ < kRunPatience) return absl::OkStatus();
  no_worker_ = true;
  v1::ErrorDetail detail;
  detail.set_fix("name other recordings with --recordings, or use a GPU (--device cuda:0)");
  return WithDetail(absl::FailedPreconditionError(campaign->message()), detail);
}

void CampaignRun::Cancel(const std::string& reason) {
  if (connection_ == nullptr || campaign_.empty()) return;
  v1::CancelCampaignRequest request;
  request.set_name(campaign_);
  request.set_reason(reason);
  request.set_author(Author());
  // It may have ended in the meantime; then that is its end.
  connection_->client().Cancel(request).status().IgnoreError();
}

absl::StatusOr<int> CampaignRun::Conclude(int exit_code) {
  if (campaign_.empty()) return exit_code;
  absl::StatusOr<v1::Campaign> campaign =
      connection_->Ask([&](CampaignClient& client) { return client.GetCampaign(campaign_); });
  if (!campaign.ok()) return campaign.status();
  if (options_.json) {
    PrintJsonLine(*campaign, /*every_field=*/true);
  } else if (exit_code != kNoWorker && (exit_code != kPaused || only_proposals_)) {
    if (absl::Status printed = PrintSummary(*connection_, *campaign); !printed.ok()) return printed;
    if (options_.settings.orchestrator.empty()) {
      std::printf("%-10s %s\n", "database", options_.settings.database.c_str());
    }
    const absl::Duration patience = campaign->has_end_time() ? kReport : absl::ZeroDuration();
    if (const std::optional<std::filesystem::path> report = AwaitReport(options_.settings, *campaign, patience)) {
      std::printf("%-10s %s\n", "report", report->c_str());
    }
    const std::string rest = absl::StrCat(" ", ShortName(campaign_), options_.flags);
    std::printf("%-10s pawl explain%s\n%-10s pawl history%s\n%-10s pawl best%s\n", "look at", rest.c_str(), "",
                rest.c_str(), "", rest.c_str());
  }
  std::fflush(stdout);
  if (worker_ != nullptr) worker_->Stop(exit_code == kInterrupted ? absl::Seconds(2) : kGrace);
  connection_->Close();
  return exit_code == kDone ? ExitCodeOf(*campaign) : exit_code;
}

}  // namespace pawl
