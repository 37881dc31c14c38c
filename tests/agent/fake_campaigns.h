#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/campaigns/campaigns.h"
#include "agent/tools/bundles.h"
#include "base/sync/steady_condition.h"

namespace pawl {

// One campaign, campaigns/7, with what a test puts into it before it is asked. Thread-safe.
class FakeCampaigns final : public Campaigns {
 public:
  FakeCampaigns();

  v1::Campaign campaign;
  v1::Bundle bundle;
  v1::Situation situation;
  std::vector<v1::Iteration> iterations;                        // the last kept one is the best
  std::vector<v1::Campaign> others;                             // that there are beside it
  std::map<std::string, std::vector<v1::Iteration>> of_others;  // their iterations
  std::atomic<int> lists = 0;                                   // how often iterations were asked for
  std::string patched_source;                                   // of iterations with the hash "patched"
  absl::Status propose_fails;                                   // not OK: proposals are refused so

  // What watching sends from now on.
  void Add(v1::Event event);
  void Add(const v1::Progress& progress);
  std::vector<v1::ProposeChangeRequest> proposals() const;
  std::vector<v1::SubmitCampaignRequest> submits() const;

  absl::StatusOr<v1::Campaign> Submit(const v1::SubmitCampaignRequest& request) override;
  absl::StatusOr<v1::Campaign> GetCampaign(const std::string& name) override;
  absl::StatusOr<v1::ListCampaignsResponse> ListCampaigns(const v1::ListCampaignsRequest& request) override;
  absl::StatusOr<v1::ListIterationsResponse> ListIterations(const v1::ListIterationsRequest& request) override;
  absl::StatusOr<v1::Iteration> GetIteration(const std::string& name) override;
  absl::StatusOr<v1::BestVariant> GetBestVariant(const std::string& name) override;
  absl::StatusOr<v1::Situation> GetSituation(const std::string& name) override;
  absl::StatusOr<v1::ProposeChangeResponse> Propose(const v1::ProposeChangeRequest& request) override;
  absl::StatusOr<v1::GetReportResponse> GetReport(const v1::GetReportRequest& request) override;
  absl::StatusOr<v1::GetBlobResponse> GetBlob(const std::string& hash) override;
  std::unique_ptr<CampaignWatch> Watch(const std::string& name, int64_t after_sequence) override;

 private:
  class FakeWatch;
  mutable absl::Mutex mutex_;
  SteadyCondition added_;
  std::vector<v1::WatchCampaignResponse> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ProposeChangeRequest> proposals_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SubmitCampaignRequest> submits_ ABSL_GUARDED_BY(mutex_);
};

// Knows the bundle of FakeCampaigns by the folder "saxpy", and by any files.
class FakeBundles final : public Bundles {
 public:
  absl::StatusOr<v1::Bundle> Read(const BundleSource& source) const override;
  absl::StatusOr<v1::CheckReport> Check(const BundleSource& source, const std::string& gpu) const override;
};

}  // namespace pawl
