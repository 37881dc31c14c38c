#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"
#include "grpcpp/grpcpp.h"
#include "orchestrator/http/api.h"
#include "orchestrator/http/json.h"

namespace pawl {
namespace {

constexpr auto kLook = std::chrono::milliseconds(300);  // whether the reader is still there

// Reads one message ahead and no further: a slow browser makes the stream wait, not the memory grow.
class Watch final : public HttpEvents, public grpc::ClientReadReactor<v1::WatchCampaignResponse> {
 public:
  Watch(v1::CampaignService::Stub& stub, const v1::WatchCampaignRequest& request, absl::Duration patience)
      : patience_(absl::ToChronoMilliseconds(patience)), request_(request) {
    stub.async()->WatchCampaign(&context_, &request_, this);
    AddHold();  // reads are started from another thread than the reactor's
    StartRead(&message_);
    StartCall();
  }

  ~Watch() override {
    context_.TryCancel();
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (!reading_) LetGo();
    while (!done_) changed_.Wait(&mutex_);
  }

  bool Next(std::string* piece) override {
    absl::MutexLock lock(&mutex_);
    *piece = "";
    const auto deadline = std::chrono::steady_clock::now() + kLook;
    while (!ready_ && !done_ && changed_.WaitUntil(&mutex_, deadline)) {
    }
    if (!ready_ && !done_) {
      if (std::chrono::steady_clock::now() - last_ < patience_) return true;
      *piece = ": still here\n\n";
      last_ = std::chrono::steady_clock::now();
      return true;
    }
    last_ = std::chrono::steady_clock::now();
    if (!ready_) {
      *piece =
          status_.ok() ? "event: end\ndata: {}\n\n" : absl::StrCat("event: failed\ndata: ", ErrorJson(status_), "\n\n");
      return false;
    }
    if (message_.has_event()) absl::StrAppend(piece, "id: ", message_.event().sequence(), "\n");
    absl::StrAppend(piece, "data: ", MessageJson(message_), "\n\n");
    ready_ = false;
    reading_ = true;
    StartRead(&message_);
    return true;
  }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    ready_ = ok;
    if (!ok || closing_) LetGo();
    changed_.SignalAll();
  }

  void OnDone(const grpc::Status& status) override {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    done_ = true;
    changed_.SignalAll();
  }

 private:
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (held_) RemoveHold();
    held_ = false;
  }

  const std::chrono::milliseconds patience_;
  const v1::WatchCampaignRequest request_;
  grpc::ClientContext context_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  v1::WatchCampaignResponse message_;            // gRPC's while a read is under way
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;  // a read is under way
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;   // message_ holds one that was not handed on
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  // Something was sent.
  std::chrono::steady_clock::time_point last_ ABSL_GUARDED_BY(mutex_) = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<HttpEvents> WatchAsEvents(v1::CampaignService::Stub& stub, const v1::WatchCampaignRequest& request,
                                          absl::Duration patience) {
  return std::make_unique<Watch>(stub, request, patience);
}

}  // namespace pawl
