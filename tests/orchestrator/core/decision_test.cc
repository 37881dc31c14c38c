// The engine decides while others use the service: it may take long, and what it decided may be overtaken.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <future>

#include "absl/synchronization/mutex.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

// Chooses neighbour by neighbour, once it may.
class HeldChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    {
      absl::MutexLock lock(&mutex_);
      ++asked_;
      mutex_.Await(absl::Condition(&free_));
    }
    if (before_) before_();
    return neighbours_.Next(campaign);
  }
  void Hold() {
    absl::MutexLock lock(&mutex_);
    free_ = false;
    asked_ = 0;
  }
  void AwaitAsked() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* asked) { return *asked > 0; }, &asked_));
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    free_ = true;
  }
  void Before(std::function<void()> act) { before_ = std::move(act); }

 private:
  const NeighbourChooser neighbours_;
  std::function<void()> before_;
  mutable absl::Mutex mutex_;
  mutable bool free_ = true;
  mutable int asked_ = 0;
};

class DecisionTest : public ::testing::Test {
 protected:
  DecisionTest() : world_({}, 0, &chooser_), campaign_(world_.Submit()), worker_(world_, "a") {}
  ~DecisionTest() override { chooser_.Release(); }

  std::future<absl::StatusOr<v1::CompleteTrialResponse>> Completes(ScriptedWorker& worker,
                                                                   const v1::LeaseTrialResponse& leased) {
    return std::async(std::launch::async,
                      [&worker, leased] { return worker.Complete(leased, NothingHelps, /*lease_next=*/true); });
  }
  // Delivers the start, and is in the middle of the decision that follows.
  void BeginDecision() {
    chooser_.Hold();
    answer_ = Completes(worker_, worker_.MustLease());
    chooser_.AwaitAsked();
  }
  v1::Event::EventCase LastEvent() { return world_.Events(campaign_).back().event_case(); }

  FaultyDisk disk_;
  HeldChooser chooser_;
  World world_;
  const std::string campaign_;
  ScriptedWorker worker_;
  std::future<absl::StatusOr<v1::CompleteTrialResponse>> answer_;
};

TEST_F(DecisionTest, HoldsUpNobodyElse) {
  BeginDecision();
  EXPECT_EQ(world_->Workers({})->workers_size(), 1);
  EXPECT_EQ(world_.Get(campaign_).state(), v1::RUNNING);
  const std::string second = world_.Submit();
  ScriptedWorker other(world_, "b");
  EXPECT_EQ(other.MustLease().trial().iteration(), second + "/iterations/0");
  world_.Pass(absl::Seconds(1));
  EXPECT_EQ(world_.Iterations(campaign_).size(), 1u) << "the result is written by the next tick";
  chooser_.Release();
  const absl::StatusOr<v1::CompleteTrialResponse> completed = answer_.get();
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_EQ(completed->next().trial().iteration(), campaign_ + "/iterations/1");
}

TEST_F(DecisionTest, IsDroppedWhereTheCampaignIsPausedMeanwhile) {
  BeginDecision();
  v1::PauseCampaignRequest pause;
  pause.set_name(campaign_);
  const absl::StatusOr<v1::Campaign> paused = world_->Pause(pause);
  ASSERT_TRUE(paused.ok()) << paused.status();
  EXPECT_EQ(paused->state(), v1::PAUSED);
  chooser_.Release();
  const absl::StatusOr<v1::CompleteTrialResponse> completed = answer_.get();
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_FALSE(completed->has_next());
  EXPECT_EQ(LastEvent(), v1::Event::kPaused);
  EXPECT_EQ(world_.Iterations(campaign_).size(), 1u) << "the result is written before the pause";
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign_);
  ASSERT_TRUE(world_->Resume(resume).ok());
  EXPECT_EQ(worker_.MustLease().trial().iteration(), campaign_ + "/iterations/1");
}

TEST_F(DecisionTest, IsDroppedWhereTheCampaignIsCancelledMeanwhile) {
  BeginDecision();
  v1::CancelCampaignRequest cancel;
  cancel.set_name(campaign_);
  const absl::StatusOr<v1::Campaign> cancelled = world_->Cancel(cancel);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::CANCELLED);
  chooser_.Release();
  const absl::StatusOr<v1::CompleteTrialResponse> completed = answer_.get();
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_FALSE(completed->has_next());
  EXPECT_EQ(LastEvent(), v1::Event::kEnded);
}

TEST_F(DecisionTest, IsMadeAgainWhereAChangeIsProposedMeanwhile) {
  BeginDecision();
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign_);
  request.set_author("somebody");
  request.mutable_change()->set_variable(TinyBundle().variables(0).name());
  request.mutable_change()->set_to(TinyBundle().variables(0).values(0));
  const absl::StatusOr<v1::ProposeChangeResponse> proposed = world_->Propose(request);
  ASSERT_TRUE(proposed.ok()) << proposed.status();
  chooser_.Release();
  ASSERT_TRUE(answer_.get()->has_next());
  EXPECT_EQ(world_.Events(campaign_, v1::Event::kPlanned).back().planned().author(), "somebody");
}

TEST_F(DecisionTest, TakesAResultOfTheSameCampaignAfterwards) {
  ScriptedWorker other(world_, "b");
  v1::LeaseTrialResponse first = worker_.Complete(worker_.MustLease(), NothingHelps, true)->next();
  const v1::LeaseTrialResponse second = other.MustLease();
  chooser_.Hold();
  auto first_answer = Completes(worker_, first);
  chooser_.AwaitAsked();
  auto second_answer = Completes(other, second);
  EXPECT_EQ(second_answer.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  chooser_.Release();
  EXPECT_TRUE(first_answer.get()->has_next());
  EXPECT_TRUE(second_answer.get()->has_next());
  EXPECT_EQ(world_.Iterations(campaign_).size(), 3u);
}

TEST_F(DecisionTest, IsMadeAgainAfterItCouldNotBeWritten) {
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  chooser_.Before([&] { disk_.FailSyncs(SQLITE_IOERR_FSYNC); });
  ExpectError(worker_.Complete(leased, NothingHelps, true).status(), absl::StatusCode::kUnavailable, "disk failed");
  EXPECT_FALSE(world_->serving());
  chooser_.Before(nullptr);
  disk_.Heal();
  world_.Pass(absl::Seconds(1));
  EXPECT_TRUE(world_->serving());
  const absl::Status again = worker_.Complete(leased).status();
  EXPECT_TRUE(again.ok() || again.code() == absl::StatusCode::kAlreadyExists) << again;
  EXPECT_EQ(worker_.MustLease().trial().iteration(), campaign_ + "/iterations/1");
}

}  // namespace
}  // namespace pawl
