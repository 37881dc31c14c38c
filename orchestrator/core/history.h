#pragma once

#include "absl/status/statusor.h"
#include "db/store.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/worker_service.pb.h"
#include "profiles/metrics.h"

namespace pawl {

// Answers from the store alone; nothing here changes anything. Errors as campaign_service.proto has them. Thread-safe.
class History {
 public:
  // `metrics` are those that may be asked for; they must outlive it.
  explicit History(Store& store, const Metrics& metrics = Metrics::Default()) : store_(store), metrics_(metrics) {}

  absl::StatusOr<v1::ListCampaignsResponse> ListCampaigns(const v1::ListCampaignsRequest& request) const;
  absl::StatusOr<v1::ListIterationsResponse> ListIterations(const v1::ListIterationsRequest& request) const;
  absl::StatusOr<v1::Iteration> GetIteration(const v1::GetIterationRequest& request) const;
  absl::StatusOr<v1::BestVariant> GetBestVariant(const v1::GetBestVariantRequest& request) const;
  absl::StatusOr<v1::GetBlobResponse> GetBlob(const v1::GetBlobRequest& request) const;
  absl::StatusOr<v1::Bundle> GetBundle(const v1::GetBundleRequest& request) const;

 private:
  absl::StatusOr<v1::Campaign> Campaign(const std::string& field, const std::string& name) const;

  absl::Status AddMetrics(const v1::ListIterationsRequest& request, v1::ListIterationsResponse* response) const;

  Store& store_;
  const Metrics& metrics_;
};

}  // namespace pawl
