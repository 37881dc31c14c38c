#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/campaigns/campaign_watch.h"
#include "base/channel/channel.h"
#include "pawl/v1/campaign_service.pb.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace pawl {

// CampaignService by plain calls: each waits for its answer, 30 s at most. Errors are the orchestrator's, with its
// ErrorDetail (DetailOf in failure.h); where none answers, the detail is made here. Thread-safe.
class CampaignClient {
 public:
  // To unix:/path or host:port; connects with the first call. INVALID_ARGUMENT: another machine's address without TLS,
  // or credentials that can't be read.
  static absl::StatusOr<std::unique_ptr<CampaignClient>> Open(const std::string& address,
                                                              const Credentials& credentials);
  explicit CampaignClient(std::string address);  // of this machine, without credentials
  ~CampaignClient();

  absl::StatusOr<v1::Campaign> Submit(const v1::SubmitCampaignRequest& request);
  absl::StatusOr<v1::Campaign> GetCampaign(const std::string& name);
  absl::StatusOr<v1::GetBlobResponse> GetBlob(const std::string& hash);
  absl::StatusOr<v1::ListCampaignsResponse> ListCampaigns(const v1::ListCampaignsRequest& request);
  absl::StatusOr<v1::ListIterationsResponse> ListIterations(const v1::ListIterationsRequest& request);
  absl::StatusOr<v1::Iteration> GetIteration(const std::string& name);
  std::unique_ptr<CampaignWatch> Watch(const std::string& campaign, int64_t after_sequence);
  absl::StatusOr<v1::Campaign> Pause(const v1::PauseCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Resume(const v1::ResumeCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Cancel(const v1::CancelCampaignRequest& request);
  absl::StatusOr<v1::BestVariant> GetBestVariant(const std::string& campaign);
  absl::StatusOr<v1::VerifyIterationResponse> Verify(const v1::VerifyIterationRequest& request);
  absl::StatusOr<v1::ProposeChangeResponse> Propose(const v1::ProposeChangeRequest& request);
  absl::StatusOr<v1::Situation> GetSituation(const std::string& campaign);
  absl::StatusOr<v1::GetReportResponse> GetReport(const v1::GetReportRequest& request);
  absl::StatusOr<v1::ListPatternsResponse> ListPatterns(const v1::ListPatternsRequest& request);
  absl::StatusOr<v1::ImportPatternsResponse> ImportPatterns(const v1::ImportPatternsRequest& request);
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(bool gone_too);
  absl::StatusOr<v1::Maintenance> GetMaintenance();
  absl::StatusOr<v1::Maintenance> SetMaintenance(const v1::SetMaintenanceRequest& request);

  const std::string& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // What a status that came from an orchestrator at this address means.
  static absl::Status Read(const grpc::Status& status, const std::string& address);

 private:
  CampaignClient(const std::string& address, const std::shared_ptr<grpc::Channel>& channel);

  class Stub;
  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace pawl
