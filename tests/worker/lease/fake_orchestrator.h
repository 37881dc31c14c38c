#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/lease/worker_client.h"

namespace pawl {

// An orchestrator in memory, for one worker: hands out the trials it was given in order, and keeps what comes back.
// While `down`, every call answers UNAVAILABLE; `answers` may hold statuses that are given instead of the next answers
// of a call. Thread-safe.
class FakeOrchestrator : public WorkerClient {
 public:
  struct Completed {
    std::string trial;
    v1::CompleteTrialRequest request;
  };

  explicit FakeOrchestrator(double renew_seconds = 0.02) : renew_seconds_(renew_seconds) {}

  void Add(const std::string& trial) {
    Change([&] { queue_.push_back(trial); });
  }
  // Answers a call of Lease that waits without a trial: what may follow the trial with this name.
  void Foretell(const std::string& trial, int block) {
    Change([&] {
      foretold_.emplace().set_lease(absl::StrCat("lease ", trial));
      (*foretold_->add_foreseen()->mutable_variant()->mutable_values())["BLOCK"] = block;
    });
  }
  void SetDown(bool down) {
    Change([&] { down_ = down; });
  }
  // Of calls "register", "lease", "renew", "complete", "blob", "bundle", "drain".
  void Answer(const std::string& call, absl::Status status) {
    Change([&] { answers_[call].push_back(std::move(status)); });
  }
  void CancelCampaign() {
    Change([&] { cancelled_ = given_; });
  }
  void Forget() {
    Change([&] { registered_ = false; });
  }

  // Waits for it, at most ten seconds. False: it did not come to pass.
  bool WaitFor(const std::function<bool(const FakeOrchestrator&)>& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return what(*this); });
  }

  // What happened so far; inside of WaitFor, or after the worker has ended.
  std::vector<Completed> completed;
  std::vector<v1::Progress> renewals;
  std::vector<v1::PutBlobRequest> blobs;
  std::vector<std::string> drains;  // "drain", "gone"
  std::vector<std::string> instances;
  int leases = 0;        // that were given
  int next_leases = 0;   // of them with the answer to a completed trial
  int waiting = 0;       // calls of Lease that wait
  int foretellings = 0;  // that were given
  int bundles = 0;       // that were asked for
  int refused = 0;       // calls that found it down

  absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("register"); !status.ok()) return status;
    registered_ = true;
    instances.push_back(request.instance());
    changed_.notify_all();
    v1::RegisterWorkerResponse response;
    response.set_lease_seconds(15);
    response.set_renew_seconds(renew_seconds_);
    return response;
  }

  absl::StatusOr<v1::LeaseTrialResponse> Lease(const v1::LeaseTrialRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("lease"); !status.ok()) return status;
    ++waiting;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::duration<double>(request.wait_seconds()), [&] {
      return stopped_ || down_ || !registered_ || !answers_["lease"].empty() || !queue_.empty() || foretold_;
    });
    --waiting;
    if (stopped_) return absl::CancelledError("stopped");
    if (absl::Status status = Scripted("lease"); !status.ok()) return status;
    if (foretold_) {
      ++foretellings;
      return *std::exchange(foretold_, std::nullopt);
    }
    return Next();
  }

  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("renew"); !status.ok()) return status;
    renewals.push_back(request.progress());
    changed_.notify_all();
    v1::RenewLeaseResponse response;
    response.set_stop(cancelled_.contains(request.lease()));
    return response;
  }

  absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::CompleteTrialRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("complete"); !status.ok()) return status;
    completed.push_back({request.lease().substr(request.lease().find(' ') + 1), request});
    v1::CompleteTrialResponse response;
    if (request.lease_next() && !queue_.empty()) {
      ++next_leases;
      *response.mutable_next() = Next();
    }
    changed_.notify_all();
    return response;
  }

  absl::Status PutBlob(const v1::PutBlobRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("blob"); !status.ok()) return status;
    blobs.push_back(request);
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Bundle> GetBundle(const std::string& hash) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("bundle"); !status.ok()) return status;
    ++bundles;
    v1::Bundle bundle;
    bundle.set_name(hash);
    return bundle;
  }

  absl::Status Drain(const v1::DrainWorkerRequest& request) override {
    std::unique_lock lock(mutex_);
    if (absl::Status status = Scripted("drain"); !status.ok()) return status;
    drains.push_back(request.gone() ? "gone" : "drain");
    changed_.notify_all();
    return absl::OkStatus();
  }

  void StopLeasing() override {
    Change([&] { stopped_ = true; });
  }

 private:
  template <typename Function>
  void Change(const Function& change) {
    std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  absl::Status Scripted(const std::string& call) {
    if (down_) {
      ++refused;
      changed_.notify_all();
      return absl::UnavailableError("down");
    }
    if (std::deque<absl::Status>& answers = answers_[call]; !answers.empty()) {
      absl::Status status = answers.front();
      answers.pop_front();
      changed_.notify_all();
      return status;
    }
    if (!registered_ && call != "register" && call != "bundle") return absl::NotFoundError("no such worker");
    return absl::OkStatus();
  }

  v1::LeaseTrialResponse Next() {
    v1::LeaseTrialResponse response;
    if (queue_.empty()) return response;
    ++leases;
    response.mutable_trial()->set_name(absl::StrCat("campaigns/1/trials/", queue_.front()));
    response.mutable_trial()->set_iteration(absl::StrCat("campaigns/1/iterations/", queue_.front()));
    response.mutable_trial()->set_bundle_hash("softmax");
    (*response.mutable_trial()->mutable_variant()->mutable_values())["BLOCK"] = 256;
    (*response.mutable_trial()->mutable_parent()->mutable_values())["BLOCK"] = 128;
    response.set_lease(absl::StrCat("lease ", queue_.front()));
    given_.insert(response.lease());
    queue_.pop_front();
    changed_.notify_all();
    return response;
  }

  const double renew_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  std::optional<v1::LeaseTrialResponse> foretold_;
  std::map<std::string, std::deque<absl::Status>> answers_;
  bool down_ = false;
  bool registered_ = false;
  bool stopped_ = false;
  std::set<std::string> given_, cancelled_;  // leases
};

}  // namespace pawl
