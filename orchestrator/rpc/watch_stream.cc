#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/grpc_status.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/state/campaign.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "orchestrator/rpc/campaign_service.h"

namespace pawl {
namespace {

constexpr int kEventsAWrite = 100;
// Streams need no deadline, so it is their number that keeps them within bounds.
constexpr int kMostStreams = 500;
std::atomic<int> streams = 0;

using WriteReactor = grpc::ServerWriteReactor<v1::WatchCampaignResponse>;

// One write is under way at a time; what happens meanwhile is read from the store when it is done, so a slow client
// costs no memory. Progress is kept only the latest.
class WatchStream final : public WriteReactor, public Watcher {
 public:
  WatchStream(Store& store, int64_t campaign, int64_t after) : store_(store), campaign_(campaign), after_(after) {
    ++streams;
  }
  ~WatchStream() override { --streams; }

  // Not for the constructor: it needs a shared_ptr to this.
  void Start(WatchHub& hub, std::shared_ptr<WatchStream> self) {
    self_ = self;
    hub.Add(campaign_, self);
    Wake();
  }

  void Wake() override {
    absl::MutexLock lock(&mutex_);
    fresh_ = true;
    Write();
  }

  void Show(const v1::Progress& progress) override {
    absl::MutexLock lock(&mutex_);
    progress_ = progress;
    Write();
  }

  void Close() override {
    absl::MutexLock lock(&mutex_);
    End(TryLater("the orchestrator is shutting down; watch again from the last sequence received", 1));
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) return End(absl::CancelledError("the client disconnected"));
    Write();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    End(absl::CancelledError("the client disconnected"));
  }

  void OnDone() override { const std::shared_ptr<WatchStream> last = std::move(self_); }

 private:
  // Writes the next thing there is, if nothing is being written.
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || ended_) return;
    if (events_.empty() && fresh_) {
      absl::StatusOr<std::vector<v1::Event>> events = store_.Events(campaign_, after_, kEventsAWrite);
      if (!events.ok()) return End(events.status());
      fresh_ = static_cast<int>(events->size()) == kEventsAWrite;
      for (v1::Event& event : *events) events_.push_back(std::move(event));
    }
    message_.Clear();
    if (!events_.empty()) {
      v1::Event& event = *message_.mutable_event();
      event = std::move(events_.front());
      events_.pop_front();
      after_ = event.sequence();
      AddMissingFields(&event);
      // Evidence and samples are GetIteration's.
      if (event.has_finished()) event.mutable_finished()->clear_result();
      // The client that asked for the hand-off has the files.
      if (event.has_planned()) event.mutable_planned()->clear_hand_off();
    } else if (progress_) {
      *message_.mutable_progress() = *std::move(progress_);
      progress_.reset();
    } else {
      absl::StatusOr<std::optional<v1::Campaign>> campaign = store_.GetCampaign(campaign_);
      if (!campaign.ok()) return End(campaign.status());
      const bool all = !*campaign || (IsFinal((*campaign)->state()) && !(*campaign)->verifying() &&
                                      (*campaign)->last_sequence() <= after_);
      if (all) End(absl::OkStatus());
      return;
    }
    writing_ = true;
    StartWrite(&message_);
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    ended_ = true;
    Finish(ToGrpc(status));
  }

  Store& store_;
  const int64_t campaign_;
  std::shared_ptr<WatchStream> self_;  // until OnDone

  absl::Mutex mutex_;
  int64_t after_ ABSL_GUARDED_BY(mutex_);
  bool fresh_ ABSL_GUARDED_BY(mutex_) = false;  // there may be events in the store that were not read
  std::deque<v1::Event> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Progress> progress_ ABSL_GUARDED_BY(mutex_);
  v1::WatchCampaignResponse message_ ABSL_GUARDED_BY(mutex_);  // gRPC reads it while writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class RefusedWatch final : public WriteReactor {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

WriteReactor* StartWatchStream(Store& store, WatchHub& hub, const v1::WatchCampaignRequest& request) {
  const std::optional<int64_t> number = ParseCampaignName(request.campaign());
  if (!number) return new RefusedWatch(BadField("campaign", "expected a campaign's name, like campaigns/7"));
  if (request.after_sequence() < 0) return new RefusedWatch(BadField("after_sequence", "expected 0 or more"));
  absl::StatusOr<std::optional<v1::Campaign>> campaign = store.GetCampaign(*number);
  if (!campaign.ok()) return new RefusedWatch(campaign.status());
  if (!*campaign) return new RefusedWatch(NoSuchCampaign(store, *number));
  if (streams >= kMostStreams) {
    v1::ErrorDetail detail;
    detail.set_retry_after_seconds(5);
    detail.set_fix("end some watches, or poll GetCampaign instead");
    return new RefusedWatch(
        Error(absl::StatusCode::kResourceExhausted, absl::StrCat(kMostStreams, " watches are open already"), detail));
  }
  auto stream = std::make_shared<WatchStream>(store, *number, request.after_sequence());
  stream->Start(hub, stream);
  return stream.get();
}

}  // namespace pawl
