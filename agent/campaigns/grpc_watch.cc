#include "agent/campaigns/grpc_watch.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>

#include "absl/time/clock.h"

namespace pawl {
namespace {

class GrpcWatch final : public CampaignWatch {
 public:
  GrpcWatch(std::shared_ptr<v1::CampaignService::Stub> stub, const v1::WatchCampaignRequest& request, ReadStatus read)
      : stub_(std::move(stub)),
        read_(std::move(read)),
        reader_(stub_->PrepareAsyncWatchCampaign(&context_, request, &queue_)) {
    reader_->StartCall(&waiting_);
  }

  ~GrpcWatch() override {
    context_.TryCancel();
    while (step_ != Step::kOver) Take(std::chrono::system_clock::time_point::max());
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  Got Next(absl::Duration wait, v1::WatchCampaignResponse* message) override {
    const auto deadline = absl::ToChronoTime(absl::Now() + wait);
    while (step_ != Step::kOver) {
      const bool reading = step_ == Step::kRead;
      if (!Take(deadline)) return Got::kNothingYet;
      if (!reading || step_ != Step::kRead) continue;
      *message = std::move(came_);
      return Got::kMessage;
    }
    return Got::kEnd;
  }

  absl::Status status() const override { return read_(status_); }

 private:
  // One operation is under way at a time: the call's start, a read, or the end.
  enum class Step { kStart, kRead, kFinish, kOver };

  // Takes what comes first and asks for the next. False: nothing came by the deadline.
  bool Take(std::chrono::system_clock::time_point deadline) {
    if (step_ == Step::kRead && came_taken_) {
      came_taken_ = false;
      came_.Clear();
      reader_->Read(&came_, &waiting_);
    }
    void* tag;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
    if (step_ == Step::kFinish) {
      step_ = Step::kOver;
    } else if (ok) {
      step_ = Step::kRead;
      came_taken_ = true;
    } else {
      step_ = Step::kFinish;
      reader_->Finish(&status_, &waiting_);
    }
    return true;
  }

  const std::shared_ptr<v1::CampaignService::Stub> stub_;
  const ReadStatus read_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::WatchCampaignResponse>> reader_;
  v1::WatchCampaignResponse came_;
  bool came_taken_ = false;
  Step step_ = Step::kStart;
  grpc::Status status_;
  char waiting_ = 0;  // its address is the tag
};

}  // namespace

std::unique_ptr<CampaignWatch> StartGrpcWatch(std::shared_ptr<v1::CampaignService::Stub> stub,
                                              const v1::WatchCampaignRequest& request, ReadStatus read) {
  return std::make_unique<GrpcWatch>(std::move(stub), request, std::move(read));
}

}  // namespace pawl
