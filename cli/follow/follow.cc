#include "cli/follow/follow.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "cli/connect/interrupt.h"

namespace pawl {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// A connection can be dead without either end being told: after so long a silence, a call finds out.
constexpr absl::Duration kSilence = absl::Seconds(20);

class Following {
 public:
  Following(Connection& connection, const std::string& campaign, const FollowOptions& options)
      : connection_(connection), campaign_(campaign), options_(options), last_(options.after_sequence) {}

  absl::Status Run() {
    while (true) {
      const absl::Status status = Watch();
      if (enough_ || Interrupted() || !absl::IsUnavailable(status) || !answered_) return status;
      if (absl::Status found = FindAgain(); !found.ok()) return found;
    }
  }

 private:
  absl::Status Watch() {
    const std::unique_ptr<CampaignWatch> watch = connection_.client().Watch(campaign_, last_);
    SteadyTime heard = SteadyNow();
    SteadyTime ticked = heard;
    while (true) {
      if (Interrupted()) return absl::CancelledError("interrupted");
      v1::WatchCampaignResponse message;
      switch (watch->Next(kTick, &message)) {
        case CampaignWatch::Got::kMessage:
          answered_ = true;
          told_ = false;
          heard = SteadyNow();
          if (message.has_event()) last_ = message.event().sequence();
          enough_ = !options_.see(message);
          if (enough_) return absl::OkStatus();
          if (heard - ticked < kTick) break;
          ticked = heard;
          if (absl::Status status = options_.tick(); !status.ok()) return status;
          break;
        case CampaignWatch::Got::kEnd:
          return watch->status();
        case CampaignWatch::Got::kNothingYet:
          ticked = SteadyNow();
          if (absl::Status status = options_.tick(); !status.ok()) return status;
          if (SteadyNow() - heard < kSilence) break;
          if (absl::Status status = connection_.client().GetCampaign(campaign_).status(); !status.ok()) {
            return absl::IsDeadlineExceeded(status) ? absl::UnavailableError(status.message()) : status;
          }
          heard = SteadyNow();
          break;
      }
    }
  }

  absl::Status FindAgain() {
    if (!told_)
      options_.say(absl::StrCat("the orchestrator at ", connection_.address(), " does not answer: reconnecting"));
    told_ = true;
    while (!Interrupted()) {
      const absl::Status found = connection_.Reopen(options_.reconnect);
      if (connection_.own() && !found.ok()) return found;
      if (found.ok() && connection_.client().GetCampaign(campaign_).ok()) {
        options_.reconnected();
        return absl::OkStatus();
      }
      if (absl::Status status = options_.tick(); !status.ok()) return status;
      absl::SleepFor(5 * kTick);
    }
    return absl::CancelledError("interrupted");
  }

  Connection& connection_;
  const std::string campaign_;
  const FollowOptions& options_;
  int64_t last_;
  bool answered_ = false;
  bool told_ = false;  // that it is gone
  bool enough_ = false;
};

}  // namespace

absl::Status Follow(Connection& connection, const std::string& campaign, const FollowOptions& options) {
  return Following(connection, campaign, options).Run();
}

}  // namespace pawl
