#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/campaigns/campaign_watch.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/error.pb.h"

namespace pawl {

// CampaignService, as far as agents use it. Errors carry the orchestrator's ErrorDetail (ErrorText). Thread-safe.
class Campaigns {
 public:
  virtual ~Campaigns() = default;

  virtual absl::StatusOr<v1::Campaign> Submit(const v1::SubmitCampaignRequest& request) = 0;
  virtual absl::StatusOr<v1::Campaign> GetCampaign(const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListCampaignsResponse> ListCampaigns(const v1::ListCampaignsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListIterationsResponse> ListIterations(const v1::ListIterationsRequest& request) = 0;
  virtual absl::StatusOr<v1::Iteration> GetIteration(const std::string& name) = 0;
  virtual absl::StatusOr<v1::BestVariant> GetBestVariant(const std::string& campaign) = 0;
  virtual absl::StatusOr<v1::Situation> GetSituation(const std::string& campaign) = 0;
  virtual absl::StatusOr<v1::ProposeChangeResponse> Propose(const v1::ProposeChangeRequest& request) = 0;
  virtual absl::StatusOr<v1::GetReportResponse> GetReport(const v1::GetReportRequest& request) = 0;
  virtual absl::StatusOr<v1::GetBlobResponse> GetBlob(const std::string& hash) = 0;
  virtual std::unique_ptr<CampaignWatch> Watch(const std::string& campaign, int64_t after_sequence) = 0;
};

// A status with this detail, and the detail that a status has.
absl::Status WithErrorDetail(absl::Status status, const v1::ErrorDetail& detail);
v1::ErrorDetail ErrorDetailOf(const absl::Status& status);

// What happened, every mistake of a bundle, and what to do, one a line.
std::string ErrorText(const absl::Status& status);

}  // namespace pawl
