#include "orchestrator/http/watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
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
    std::unique_lock lock(mutex_);
    closing_ = true;
    if (!reading_) LetGo();
    changed_.wait(lock, [this] { return done_; });
  }

  bool Next(std::string* piece) override {
    std::unique_lock lock(mutex_);
    *piece = "";
    if (!changed_.wait_for(lock, kLook, [this] { return ready_ || done_; })) {
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
    absl::StrAppend(piece, "data: ", Json(message_), "\n\n");
    ready_ = false;
    reading_ = true;
    StartRead(&message_);
    return true;
  }

  void OnReadDone(bool ok) override {
    std::lock_guard lock(mutex_);
    reading_ = false;
    ready_ = ok;
    if (!ok || closing_) LetGo();
    changed_.notify_all();
  }

  void OnDone(const grpc::Status& status) override {
    std::lock_guard lock(mutex_);
    status_ = status;
    done_ = true;
    changed_.notify_all();
  }

 private:
  void LetGo() {
    if (held_) RemoveHold();
    held_ = false;
  }

  const std::chrono::milliseconds patience_;
  const v1::WatchCampaignRequest request_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1::WatchCampaignResponse message_;
  bool reading_ = true;  // a read is under way
  bool ready_ = false;   // message_ holds one that was not handed on
  bool held_ = true;
  bool closing_ = false;
  bool done_ = false;
  grpc::Status status_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();  // something was sent
};

}  // namespace

std::unique_ptr<HttpEvents> WatchAsEvents(v1::CampaignService::Stub& stub, const v1::WatchCampaignRequest& request,
                                          absl::Duration patience) {
  return std::make_unique<Watch>(stub, request, patience);
}

}  // namespace pawl
