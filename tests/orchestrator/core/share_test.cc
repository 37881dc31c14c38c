// Whose trial a worker gets where several authors have some.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

class ShareTest : public testing::Test {
 protected:
  explicit ShareTest(std::map<std::string, double> shares = {}) : world_(Options(std::move(shares))) {}

  static OrchestratorOptions Options(std::map<std::string, double> shares) {
    OrchestratorOptions options;
    options.shares = std::move(shares);
    return options;
  }
  void Submit(const std::string& author, int campaigns, int priority = 0, const std::string& gpu = "") {
    for (int i = 0; i < campaigns; ++i) {
      v1::SubmitCampaignRequest request;
      *request.mutable_bundle() = TinyBundle();
      request.set_author(author);
      request.mutable_spec()->set_priority(priority);
      request.mutable_spec()->set_gpu(gpu);
      const absl::StatusOr<v1::Campaign> campaign = world_->Submit(request);
      ASSERT_TRUE(campaign.ok()) << campaign.status();
      authors_[campaign->name()] = author;
    }
  }
  // How many trials of each author are leased to so many workers.
  std::map<std::string, int> LeasesOf(int workers) {
    std::map<std::string, int> leases;
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<ScriptedWorker>(world_, absl::StrCat("w", workers_.size())));
      const v1::LeaseTrialResponse leased = workers_.back()->MustLease();
      ++leases[authors_.at(leased.trial().name().substr(0, leased.trial().name().find("/trials/")))];
    }
    return leases;
  }

  World world_;
  std::map<std::string, std::string> authors_;  // by campaign
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

class WeightedShareTest : public ShareTest {
 protected:
  WeightedShareTest() : ShareTest({{"alice", 3}}) {}
};

TEST_F(ShareTest, GivesEachAuthorTheSameWhoeverCameFirst) {
  Submit("alice", 10);
  Submit("bob", 3);
  EXPECT_EQ(LeasesOf(6), (std::map<std::string, int>{{"alice", 3}, {"bob", 3}}));
  EXPECT_EQ(LeasesOf(4), (std::map<std::string, int>{{"alice", 4}})) << "nothing is left idle";
}

TEST_F(ShareTest, TakesTheOldestOfOneAuthor) {
  Submit("alice", 3);
  ScriptedWorker worker(world_, "a");
  EXPECT_EQ(worker.MustLease().trial().name(), "campaigns/1/trials/1");
}

TEST_F(ShareTest, TakesTheHighestPriorityOfOneAuthorAndNothingOfOthers) {
  Submit("alice", 2);
  Submit("bob", 2);
  Submit("alice", 1, 100);
  Submit("alice", 1, -100);
  std::vector<std::string> leased;
  for (int i = 0; i < 6; ++i) {
    workers_.push_back(std::make_unique<ScriptedWorker>(world_, absl::StrCat("w", i)));
    const std::string trial = workers_.back()->MustLease().trial().name();
    leased.push_back(trial.substr(0, trial.find("/trials/")));
  }
  EXPECT_EQ(leased, (std::vector<std::string>{"campaigns/3", "campaigns/5", "campaigns/1", "campaigns/4", "campaigns/2",
                                              "campaigns/6"}));
}

TEST_F(ShareTest, LeavesWorkersToOthersWhereTheHighestPriorityHasNothingForThem) {
  Submit("alice", 1);
  Submit("alice", 1, 100, "a GPU that nobody has");
  for (int i = 0; i < 6; ++i) workers_.push_back(std::make_unique<ScriptedWorker>(world_, absl::StrCat("p", i)));
  const v1::LeaseTrialResponse start = workers_[0]->MustLease();
  ASSERT_TRUE(workers_[0]->Complete(start).ok());
  int leases = 0;
  for (const auto& worker : workers_) leases += worker->Lease().value().has_trial();
  EXPECT_GT(leases, 1);
}

TEST_F(ShareTest, RefusesAPriorityBeyondItsLimits) {
  for (const int priority : {-101, 101}) {
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    request.set_author("alice");
    request.mutable_spec()->set_priority(priority);
    EXPECT_EQ(world_->Submit(request).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(WeightedShareTest, GoesByWeight) {
  Submit("bob", 10);
  Submit("alice", 10);
  EXPECT_EQ(LeasesOf(8), (std::map<std::string, int>{{"alice", 6}, {"bob", 2}}));
}

TEST_F(ShareTest, PlansForAnAuthorsShareOfTheWorkers) {
  Submit("alice", 3);
  Submit("bob", 1);
  std::vector<std::unique_ptr<ScriptedWorker>> workers;
  for (int i = 0; i < 12; ++i) workers.push_back(std::make_unique<ScriptedWorker>(world_, absl::StrCat("p", i)));
  // The starts end: from then on campaigns plan rounds.
  std::vector<v1::LeaseTrialResponse> starts;
  for (int i = 0; i < 4; ++i) starts.push_back(workers[i]->MustLease());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(workers[i]->Complete(starts[i]).ok());
  std::map<std::string, int> leases;
  for (const auto& worker : workers) {
    const v1::LeaseTrialResponse leased = worker->Lease().value();
    if (!leased.has_trial()) continue;
    ++leases[authors_.at(leased.trial().name().substr(0, leased.trial().name().find("/trials/")))];
  }
  EXPECT_GT(leases["bob"], leases["alice"] / 3) << "one campaign of bob may use more than one of alice's three";
}

}  // namespace
}  // namespace pawl
