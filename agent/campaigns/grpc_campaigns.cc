#include "agent/campaigns/grpc_campaigns.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace pawl {
namespace {

using CampaignStub = v1::CampaignService::Stub;

constexpr absl::Duration kCallDeadline = absl::Seconds(20);

absl::Status AsItCame(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status read(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::ErrorDetail detail;
  if (status.error_details().empty() || !detail.ParseFromString(status.error_details())) return read;
  return WithErrorDetail(read, detail);
}

class GrpcCampaigns final : public Campaigns {
 public:
  GrpcCampaigns(const std::shared_ptr<grpc::Channel>& channel, GrpcCampaignsOptions options)
      : options_(std::move(options)), stub_(v1::CampaignService::NewStub(channel)) {
    if (options_.read == nullptr) options_.read = AsItCame;
  }

  absl::StatusOr<v1::Campaign> Submit(const v1::SubmitCampaignRequest& request) override {
    // The request's id tells a second try from a second campaign.
    return request.request_id().empty() ? Call(&CampaignStub::SubmitCampaign, request)
                                        : Ask(&CampaignStub::SubmitCampaign, request);
  }
  absl::StatusOr<v1::Campaign> GetCampaign(const std::string& name) override {
    v1::GetCampaignRequest request;
    request.set_name(name);
    return Ask(&CampaignStub::GetCampaign, request);
  }
  absl::StatusOr<v1::ListCampaignsResponse> ListCampaigns(const v1::ListCampaignsRequest& request) override {
    return Ask(&CampaignStub::ListCampaigns, request);
  }
  absl::StatusOr<v1::ListIterationsResponse> ListIterations(const v1::ListIterationsRequest& request) override {
    return Ask(&CampaignStub::ListIterations, request);
  }
  absl::StatusOr<v1::Iteration> GetIteration(const std::string& name) override {
    v1::GetIterationRequest request;
    request.set_name(name);
    return Ask(&CampaignStub::GetIteration, request);
  }
  absl::StatusOr<v1::BestVariant> GetBestVariant(const std::string& campaign) override {
    v1::GetBestVariantRequest request;
    request.set_campaign(campaign);
    return Ask(&CampaignStub::GetBestVariant, request);
  }
  absl::StatusOr<v1::Situation> GetSituation(const std::string& campaign) override {
    v1::GetSituationRequest request;
    request.set_campaign(campaign);
    return Ask(&CampaignStub::GetSituation, request);
  }
  absl::StatusOr<v1::ProposeChangeResponse> Propose(const v1::ProposeChangeRequest& request) override {
    return Call(&CampaignStub::ProposeChange, request);
  }
  absl::StatusOr<v1::GetReportResponse> GetReport(const v1::GetReportRequest& request) override {
    return Ask(&CampaignStub::GetReport, request);
  }
  absl::StatusOr<v1::GetBlobResponse> GetBlob(const std::string& hash) override {
    v1::GetBlobRequest request;
    request.set_hash(hash);
    return Ask(&CampaignStub::GetBlob, request);
  }
  std::unique_ptr<CampaignWatch> Watch(const std::string& campaign, int64_t after_sequence) override {
    v1::WatchCampaignRequest request;
    request.set_campaign(campaign);
    request.set_after_sequence(after_sequence);
    return StartGrpcWatch(stub(), request, options_.read);
  }

 private:
  template <typename Request, typename Reply>
  using Rpc = grpc::Status (CampaignStub::*)(grpc::ClientContext*, const Request&, Reply*);

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(Rpc<Request, Reply> rpc, const Request& request) {
    const std::shared_ptr<CampaignStub> stub = this->stub();
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kCallDeadline));
    Reply reply;
    const grpc::Status status = ((*stub).*rpc)(&context, request, &reply);
    if (!status.ok()) return options_.read(status);
    return reply;
  }

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Ask(Rpc<Request, Reply> rpc, const Request& request) {
    absl::StatusOr<Reply> answer = Call(rpc, request);
    return absl::IsUnavailable(answer.status()) && Reopened() ? Call(rpc, request) : std::move(answer);
  }

  bool Reopened() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (options_.reopen == nullptr) return false;
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<grpc::Channel> channel = options_.reopen();
    if (channel == nullptr) return false;
    stub_ = v1::CampaignService::NewStub(channel);
    return true;
  }

  std::shared_ptr<CampaignStub> stub() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return stub_;
  }

  GrpcCampaignsOptions options_;
  absl::Mutex mutex_;
  std::shared_ptr<CampaignStub> stub_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Campaigns> OpenGrpcCampaigns(const std::shared_ptr<grpc::Channel>& channel,
                                             GrpcCampaignsOptions options) {
  return std::make_unique<GrpcCampaigns>(channel, std::move(options));
}

}  // namespace pawl
