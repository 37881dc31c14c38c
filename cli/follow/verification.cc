#include "cli/follow/verification.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/connect/interrupt.h"
#include "cli/follow/follow.h"
#include "cli/text/failure.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

constexpr absl::Duration kVerifyLook = absl::Milliseconds(500);
constexpr absl::Duration kVerifyPatience = absl::Seconds(5);

}  // namespace

absl::Status VerificationRun::NeedWorker(const v1::Campaign& campaign) {
  const bool replayed = campaign.replay();
  if (replayed && flags_.device != "auto" && flags_.device != "replay") {
    v1::ErrorDetail detail;
    detail.set_fix(absl::StrCat("omit --device, or run a campaign on ", flags_.device, " (pawl run)"));
    no_worker_ = true;
    return WithDetail(
        absl::FailedPreconditionError(absl::StrCat(campaign.name(), " ran on ", campaign.device(), ": ", flags_.device,
                                                   " can't verify the times of a recording")),
        detail);
  }
  absl::StatusOr<v1::ListWorkersResponse> workers =
      connection_.Ask([](CampaignClient& client) { return client.ListWorkers(/*gone_too=*/false); });
  if (!workers.ok()) return workers.status();
  if (!workers->workers().empty()) return absl::OkStatus();
  // A recording's figures are verified against the recording.
  if (replayed) flags_.device = "replay";
  absl::StatusOr<std::unique_ptr<Daemon>> worker =
      StartLocalWorker(flags_, connection_.address(), connection_.settings().credentials, LocalWorkerName(), log_);
  if (!worker.ok()) return worker.status();
  worker_ = *std::move(worker);
  return absl::OkStatus();
}

absl::Status VerificationRun::Tick(const v1::Campaign& campaign) {
  const SteadyTime now = SteadyNow();
  printer_.Tick(now);
  v1::ErrorDetail detail;
  detail.set_fix(absl::StrCat("start a pawl-worker on ", campaign.device()));
  if (worker_ != nullptr && !worker_->alive()) {
    no_worker_ = true;
    return WithDetail(absl::FailedPreconditionError(worker_->Obituary()), detail);
  }
  if (leased_ || now < next_look_) return absl::OkStatus();
  next_look_ = now + kVerifyLook;
  absl::StatusOr<v1::ListWorkersResponse> workers = connection_.client().ListWorkers(/*gone_too=*/false);
  if (!workers.ok()) return absl::OkStatus();  // the watch finds out
  bool busy = false;
  for (const v1::Worker& worker : workers->workers()) busy = busy || worker.state() == v1::WORKER_STATE_BUSY;
  if (busy || (worker_ != nullptr && workers->workers().empty())) {
    idle_since_ = SteadyTime::InfiniteFuture();
    return absl::OkStatus();
  }
  if (idle_since_ == SteadyTime::InfiniteFuture()) idle_since_ = now;
  if (now - idle_since_ < kVerifyPatience) return absl::OkStatus();
  no_worker_ = true;
  return WithDetail(absl::FailedPreconditionError("no registered worker can run it"), detail);
}

absl::StatusOr<v1::Verification> VerificationRun::Run(const v1::Campaign& campaign,
                                                      const v1::VerifyIterationRequest& request) {
  if (absl::Status status = NeedWorker(campaign); !status.ok()) return status;
  absl::StatusOr<v1::VerifyIterationResponse> planned = connection_.client().Verify(request);
  if (!planned.ok()) return planned.status();
  const std::string trial = ShortName(planned->trial());
  std::optional<v1::Verification> verification;
  FollowOptions follow;
  follow.after_sequence = planned->after_sequence();
  follow.reconnect = Need::kCampaigns;
  follow.see = [&](const v1::WatchCampaignResponse& message) {
    const v1::Event& event = message.event();
    if (message.has_event()) follow.after_sequence = event.sequence();
    if (event.has_leased() && absl::StrCat(event.leased().trial()) == trial) {
      leased_ = true;
      replayed_ = event.leased().replay();
    }
    if (event.has_finished() && absl::StrCat(event.finished().trial()) == trial) {
      verification = event.finished().verification();
    } else {
      printer_.See(message, SteadyNow());
    }
    return !verification.has_value();
  };
  follow.tick = [&] { return Tick(campaign); };
  follow.say = [&](const std::string& line) { printer_.Say(line); };
  follow.reconnected = [&] {
    printer_.Say(absl::StrCat("reconnected to the orchestrator at ", connection_.address()));
    worker_ = nullptr;                   // it knows the old address
    NeedWorker(campaign).IgnoreError();  // where there is none, ticking gives up
  };
  while (!verification) {
    if (absl::Status status = Follow(connection_, campaign.name(), follow); !status.ok()) return status;
    if (Interrupted()) return absl::CancelledError("interrupted");
    // The stream of a campaign that has ended may end before the verification does.
    if (!verification) absl::SleepFor(kVerifyLook);
    if (absl::Status status = verification ? absl::OkStatus() : Tick(campaign); !status.ok()) return status;
  }
  return *verification;
}

std::string VerificationText(const v1::Verification& verification, bool replayed) {
  const bool figures = replayed && verification.measured_us() > 0;
  std::string what = OneLine(verification.text());
  if (figures) {
    what = absl::StrCat("recorded ", TimeText(verification.measured_us()), ", stored ",
                        TimeText(verification.recorded_us()));
    if (verification.measured_speedup() > 0) {
      absl::StrAppend(&what, "; ", SpeedupText(verification.measured_speedup()), " over its parent, stored ",
                      SpeedupText(verification.recorded_speedup()));
    }
  }
  std::string text = absl::StrCat("iteration ", verification.iteration(),
                                  verification.agrees() ? " agrees: " : " does not agree: ", what, "\n");
  if (figures) {
    absl::StrAppend(&text, "replay   compared with the recording; nothing was built or measured\n");
  } else {
    absl::StrAppend(&text, "code     ", verification.same_code() ? "identical machine code" : "different machine code",
                    "\n");
  }
  for (const std::string& difference : verification.differences()) {
    absl::StrAppend(&text, "differs  ", OneLine(difference), "\n");
  }
  return text;
}

}  // namespace pawl
