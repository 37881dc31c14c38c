#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/error.pb.h"

namespace pawl {

// A CampaignService in this process, on a unix socket in a temporary folder: one campaign, campaigns/7, with what a
// test puts into it. What a test sets, it sets before the call that it is for.
class FakeOrchestrator {
 public:
  FakeOrchestrator();
  ~FakeOrchestrator();

  const std::string& address() const { return address_; }
  // Ends as a killed process does; Start listens on the same address again.
  void Stop();
  void Start();

  v1::Campaign campaign;
  std::vector<v1::Iteration> iterations;
  std::vector<v1::WatchCampaignResponse> events;  // what watching sends; their sequences rise
  std::vector<v1::Worker> workers;
  v1::Maintenance maintenance;
  v1::Verification verification;             // what verifying ends with
  v1::Bundle bundle;                         // of the campaign; with the best variant, its name is the campaign's
  std::map<std::string, std::string> blobs;  // others, by hash
  v1::Situation situation;
  std::vector<v1::Pattern> patterns;
  std::set<std::string> known_metrics;         // empty: any
  std::atomic<bool> watch_stays_open = false;  // after the last event, until the client leaves; 20 s at most

  // The next call fails so.
  void FailNext(absl::Status status, const v1::ErrorDetail& detail = {});
  // A watch breaks off after so many messages, once.
  void BreakWatchAfter(int messages);

  // What was asked, in order.
  struct Asked {
    std::vector<v1::SubmitCampaignRequest> submits;
    std::vector<v1::ListIterationsRequest> lists;
    std::vector<int64_t> watches;  // after_sequence
    std::vector<v1::CancelCampaignRequest> cancels;
    std::vector<v1::ProposeChangeRequest> proposals;
    std::vector<std::string> verifications;
    std::vector<std::string> handed_off;  // paths of files
    std::vector<v1::ListPatternsRequest> pattern_lists;
    std::vector<v1::PatternFile> imports;
    std::vector<v1::SetMaintenanceRequest> maintenance;
  };
  Asked asked() const;

 private:
  class Service;
  class Server;
  std::string folder_, address_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Server> server_;
};

}  // namespace pawl
