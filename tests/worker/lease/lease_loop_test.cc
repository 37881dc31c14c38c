#include "worker/lease/lease_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"
#include "tests/promises/soak.h"
#include "tests/worker/lease/fake_orchestrator.h"
#include "worker/process/host_fault.h"

namespace pawl {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Answers every trial at once, unless its name is among those that are held back. Remembers what it was asked.
class FakeDevice : public TrialDevice {
 public:
  FakeDevice() { device_.set_label("a fake GPU"); }

  const v1::Device& device() const override { return device_; }

  absl::StatusOr<std::unique_ptr<PreparedTrial>> Prepare(const v1::Trial& trial,
                                                         std::shared_ptr<const v1::Bundle> bundle,
                                                         TrialObserver& observer) override {
    const std::string name = trial.name().substr(trial.name().rfind('/') + 1);
    EXPECT_EQ(bundle->name(), "softmax");
    Said("prepare " + name);
    if (!Pass("prepare " + name, observer)) return absl::CancelledError("stopped");
    auto prepared = std::make_unique<Prepared>();
    prepared->name = name;
    return prepared;
  }

  absl::StatusOr<TrialOutcome> Run(PreparedTrial& given, TrialObserver& observer) override {
    const std::string& name = static_cast<Prepared&>(given).name;
    Said("run " + name);
    observer.Report(v1::STAGE_MEASURE, 2, 3, "measures " + name);
    if (!Pass("run " + name, observer)) return absl::CancelledError("stopped");
    std::lock_guard lock(mutex_);
    if (const auto fault = faults_.find(name); fault != faults_.end()) return fault->second;
    TrialOutcome outcome;
    outcome.result = result;
    outcome.result.set_warm_us(7);
    outcome.artifacts = artifacts;
    v1::StageTime* time = outcome.result.add_stages();
    time->set_stage(v1::STAGE_MEASURE);
    time->set_seconds(100);
    return outcome;
  }

  void Expect(const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle,
              const std::vector<v1::ForeseenVariant>& foreseen) override {
    EXPECT_EQ(bundle->name(), "softmax");
    Said(absl::StrCat("expect ", foreseen.at(0).variant().values().at("BLOCK"), " after ",
                      trial.name().substr(trial.name().rfind('/') + 1)));
  }

  void HoldBack(const std::string& step) {
    std::lock_guard lock(mutex_);
    held_back_.insert(step);
  }
  void LetGo(const std::string& step) {
    std::lock_guard lock(mutex_);
    held_back_.erase(step);
    changed_.notify_all();
  }
  void Break(const std::string& name, absl::Status fault) {
    std::lock_guard lock(mutex_);
    faults_[name] = std::move(fault);
  }
  bool WaitUntilSaid(const std::string& step) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return std::find(said_.begin(), said_.end(), step) != said_.end(); });
  }
  std::vector<std::string> said() {
    std::lock_guard lock(mutex_);
    return said_;
  }

  std::vector<Artifact> artifacts;
  v1::TrialResult result;  // that every trial has beside its times

 private:
  struct Prepared : PreparedTrial {
    std::string name;
  };

  void Said(const std::string& step) {
    std::lock_guard lock(mutex_);
    said_.push_back(step);
    changed_.notify_all();
  }
  bool Pass(const std::string& step, TrialObserver& observer) {
    std::unique_lock lock(mutex_);
    while (held_back_.contains(step) && !observer.stopped()) changed_.wait_for(lock, std::chrono::milliseconds(5));
    if (!observer.stopped()) return true;
    said_.push_back("stopped " + step);
    changed_.notify_all();
    return false;
  }

  v1::Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_back_;
  std::map<std::string, absl::Status> faults_;
  std::vector<std::string> said_;
};

class LeaseLoopTest : public testing::Test {
 protected:
  explicit LeaseLoopTest(double renew_seconds = 0.02) : orchestrator_(renew_seconds) {
    spdlog::set_level(spdlog::level::err);
  }
  ~LeaseLoopTest() override { (void)End(); }

  void Start(int ahead = 0) {
    LeaseLoopOptions options;
    options.ahead = ahead;
    options.session.orchestrator = "127.0.0.1:4317";
    options.session.name = "workers/fake";
    options.session.instance = "1234";
    options.session.shortest_backoff = Backoff::Duration(0.001);
    options.session.longest_backoff = Backoff::Duration(0.01);
    options.session.patience = Backoff::Duration(0.3);
    options.drain_patience = drain_patience_;
    options.limits = limits_;
    loop_ = std::make_unique<LeaseLoop>(device_, orchestrator_, options);
    thread_ = std::thread([this] { status_ = loop_->Run(); });
  }
  // Waits for the end of a loop that was drained.
  absl::Status End() {
    if (!thread_.joinable()) return status_;
    loop_->Drain();
    thread_.join();
    return status_;
  }
  bool WaitForCompleted(size_t count) {
    return orchestrator_.WaitFor([&](const FakeOrchestrator& o) { return o.completed.size() >= count; });
  }
  std::vector<std::string> Results() const {
    std::vector<std::string> names;
    for (const FakeOrchestrator::Completed& completed : orchestrator_.completed) {
      if (completed.request.has_result()) names.push_back(completed.trial);
    }
    return names;
  }
  std::vector<std::string> GivenBack() const {
    std::vector<std::string> names;
    for (const FakeOrchestrator::Completed& completed : orchestrator_.completed) {
      if (completed.request.given_back()) names.push_back(completed.trial);
    }
    return names;
  }

  FakeOrchestrator orchestrator_;
  FakeDevice device_;
  // Of a loop that ends by itself.
  absl::Status OwnEnd() {
    thread_.join();
    return status_;
  }

  Backoff::Duration drain_patience_{10};
  WorkLimits limits_;
  std::unique_ptr<LeaseLoop> loop_;
  std::thread thread_;
  absl::Status status_;
};

TEST_F(LeaseLoopTest, WorksOffTrialsInTheirOrderAndDrains) {
  for (const char* trial : {"1", "2", "3"}) orchestrator_.Add(trial);
  Start();
  ASSERT_TRUE(WaitForCompleted(3));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(orchestrator_.completed[0].request.result().warm_us(), 7);
  EXPECT_EQ(orchestrator_.completed[0].request.worker(), "workers/fake");
  EXPECT_EQ(orchestrator_.completed[0].request.instance(), "1234");
  EXPECT_EQ(orchestrator_.next_leases, 2) << "the next trial comes with the answer to the last";
  EXPECT_EQ(orchestrator_.bundles, 1) << "a bundle is kept";
  EXPECT_EQ(orchestrator_.drains.back(), "gone") << "there may be no time to say that it drains: nothing is left to do";
}

TEST_F(LeaseLoopTest, BuildsWhatIsForetoldWhileATrialRuns) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start(/*ahead=*/1);
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  const auto taken = [this](int count) {  // and worked off: it waits again
    return orchestrator_.WaitFor(
        [&](const FakeOrchestrator& all) { return all.foretellings == count && all.waiting == 1; });
  };
  orchestrator_.Foretell("another worker's", 64);
  ASSERT_TRUE(taken(1));
  orchestrator_.Foretell("1", 512);
  EXPECT_TRUE(device_.WaitUntilSaid("expect 512 after 1"));
  device_.HoldBack("prepare 2");
  orchestrator_.Add("2");
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 2"));
  device_.LetGo("run 1");
  orchestrator_.Foretell("2", 1024);
  ASSERT_TRUE(taken(3));
  device_.LetGo("prepare 2");
  EXPECT_TRUE(device_.WaitUntilSaid("expect 1024 after 2")) << "after it was built itself";
  loop_->Drain();
  EXPECT_TRUE(End().ok());
}

TEST_F(LeaseLoopTest, BuildsAheadWhileATrialIsMeasured) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start(/*ahead=*/2);
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  for (const char* trial : {"2", "3", "4"}) orchestrator_.Add(trial);
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 2"));
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 3"));
  EXPECT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.leases == 3; }));
  for (const std::string& step : device_.said()) EXPECT_NE(step, "run 2") << "one is measured at a time";
  device_.LetGo("run 1");
  ASSERT_TRUE(WaitForCompleted(4));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), UnorderedElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(Results()[0], "1");
}

TEST_F(LeaseLoopTest, MeasuresWhatIsReadyFirst) {
  device_.HoldBack("prepare 1");
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start(/*ahead=*/1);
  ASSERT_TRUE(WaitForCompleted(1));
  device_.LetGo("prepare 1");
  ASSERT_TRUE(WaitForCompleted(2));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2", "1"));
}

TEST_F(LeaseLoopTest, RenewsWithTheLatestProgress) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor(
      [](const FakeOrchestrator& o) { return o.renewals.size() >= 3 && o.renewals.back().text() == "measures 1"; }));
  device_.LetGo("run 1");
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  const v1::Progress& progress = orchestrator_.renewals.back();
  EXPECT_EQ(progress.trial(), "campaigns/1/trials/1");
  EXPECT_EQ(progress.iteration(), "campaigns/1/iterations/1");
  EXPECT_EQ(progress.stage(), v1::STAGE_MEASURE);
  EXPECT_EQ(progress.step(), 2);
  EXPECT_EQ(progress.steps(), 3);
  EXPECT_EQ(progress.worker(), "workers/fake");
  EXPECT_GT(progress.seconds(), 0);
  EXPECT_EQ(progress.seconds_left(), 0) << "there was no earlier trial";
}

TEST_F(LeaseLoopTest, EstimatesFromEarlierTrialsWhatIsLeft) {
  device_.HoldBack("run 2");
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor(
      [](const FakeOrchestrator& o) { return !o.renewals.empty() && o.renewals.back().text() == "measures 2"; }));
  device_.LetGo("run 2");
  ASSERT_TRUE(WaitForCompleted(2));
  EXPECT_NEAR(orchestrator_.renewals.back().seconds_left(), 100, 12);
}

TEST_F(LeaseLoopTest, StopsATrialWhoseCampaignWasCancelled) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  orchestrator_.CancelCampaign();
  orchestrator_.Add("2");
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2")) << "nothing is given back of a cancelled campaign";
}

TEST_F(LeaseLoopTest, StopsATrialWhoseLeaseIsLost) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  orchestrator_.Answer("renew", absl::AbortedError("the lease ran out"));
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2"));
}

TEST_F(LeaseLoopTest, DoesNotBeginATrialWhoseLeaseDoesNotHold) {
  orchestrator_.Add("1");
  orchestrator_.Answer("renew", absl::AbortedError("the database was restored"));
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(device_.said(), Not(Contains("prepare 1"))) << "it asks first";
  EXPECT_THAT(device_.said(), Contains("prepare 2"));
}

class RarelyRenewingTest : public LeaseLoopTest {
 protected:
  RarelyRenewingTest() : LeaseLoopTest(/*renew_seconds=*/1000) {}
};

TEST_F(RarelyRenewingTest, ConfirmsNoLeaseThatCameWithTheAnswerToAResult) {
  for (const char* trial : {"1", "2", "3"}) orchestrator_.Add(trial);
  Start();
  ASSERT_TRUE(WaitForCompleted(3));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(orchestrator_.next_leases, 2);
  ASSERT_EQ(orchestrator_.renewals.size(), 1u);
  EXPECT_EQ(orchestrator_.renewals[0].trial(), "campaigns/1/trials/1");
}

TEST_F(LeaseLoopTest, SaysWhatAResultIsOf) {
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  const v1::CompleteTrialRequest& request = orchestrator_.completed[0].request;
  EXPECT_EQ(request.bundle_hash(), "softmax");
  EXPECT_EQ(request.variant().values().at("BLOCK"), 256);
  EXPECT_EQ(request.parent().values().at("BLOCK"), 128);
}

TEST_F(LeaseLoopTest, StopsATrialThatIsOnlyBuilt) {
  device_.HoldBack("run 1");
  device_.HoldBack("prepare 2");
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start(/*ahead=*/1);
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 2"));
  orchestrator_.CancelCampaign();
  ASSERT_TRUE(device_.WaitUntilSaid("stopped run 1"));
  ASSERT_TRUE(device_.WaitUntilSaid("stopped prepare 2"));
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.waiting > 0; }))
      << "places are free again";
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(orchestrator_.completed, IsEmpty());
}

TEST_F(LeaseLoopTest, DeliversAResultOnceTheOrchestratorIsBack) {
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  orchestrator_.SetDown(true);
  device_.LetGo("run 1");
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.refused > 20; }));
  orchestrator_.Forget();
  orchestrator_.SetDown(false);
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("1"));
  ASSERT_GE(orchestrator_.instances.size(), 2u);
  EXPECT_EQ(orchestrator_.instances.back(), "1234") << "it registers again under the same instance";
}

// What gRPC says when a server shuts down or a connection breaks is not what the orchestrator decided.
TEST_F(LeaseLoopTest, DeliversAResultAfterEveryErrorThatIsNotTheOrchestratorsOwn) {
  int errors = 0;
  for (const absl::StatusCode code :
       {absl::StatusCode::kCancelled, absl::StatusCode::kUnknown, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kInternal, absl::StatusCode::kUnavailable, absl::StatusCode::kOutOfRange}) {
    for (const char* call : {"register", "lease", "bundle", "blob", "renew", "complete"}) {
      orchestrator_.Answer(call, absl::Status(code, "the server shuts down"));
      ++errors;
    }
  }
  device_.artifacts = {{v1::Blob::LOG, "a log"}};
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return !o.renewals.empty(); }))
      << "a renewal that was cut off does not stop the trial";
  device_.LetGo("run 1");
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("1"));
  EXPECT_EQ(orchestrator_.completed[0].request.result().blobs_size(), 1);
  ReportPromise(16, absl::StrCat(errors, " errors that are not the orchestrator's own, at every call: delivered ",
                                 Results().size(), " time"));
}

TEST_F(LeaseLoopTest, TakesACountedResultForDelivered) {
  orchestrator_.Answer("complete", absl::DeadlineExceededError("no answer"));
  orchestrator_.Answer("complete", absl::AlreadyExistsError("counted before"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.leases == 1; }));
  orchestrator_.Add("2");
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2")) << "the first is not delivered a third time";
}

TEST_F(LeaseLoopTest, DropsAResultThatNobodyWants) {
  for (const absl::Status& status : {absl::AbortedError("leased again"), absl::PermissionDeniedError("no")}) {
    orchestrator_.Answer("complete", status);
  }
  for (const char* trial : {"1", "2", "3"}) orchestrator_.Add(trial);
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("3"));
}

TEST_F(LeaseLoopTest, SaysThatItsResultWasRefused) {
  orchestrator_.Answer("complete", absl::InvalidArgumentError("result.pairs: expected at most 1000"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(orchestrator_.completed[0].request.host_fault().message(), HasSubstr("expected at most 1000"));
}

TEST_F(LeaseLoopTest, DropsAResultOfAnUnknownCampaign) {
  orchestrator_.Answer("complete", absl::NotFoundError("no such campaign"));
  orchestrator_.Answer("complete", absl::NotFoundError("no such campaign"));
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2"));
}

TEST_F(LeaseLoopTest, FinishesWhatRunsAndGivesTheRestBackWhenDrained) {
  device_.HoldBack("run 1");
  device_.HoldBack("prepare 3");
  orchestrator_.Add("1");
  Start(/*ahead=*/2);
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  orchestrator_.Add("2");
  orchestrator_.Add("3");
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 2"));
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 3"));
  loop_->Drain();
  orchestrator_.Add("4");
  device_.LetGo("run 1");
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("1"));
  EXPECT_THAT(GivenBack(), UnorderedElementsAre("2", "3"));
  EXPECT_FALSE(orchestrator_.completed[0].request.lease_next());
  EXPECT_EQ(orchestrator_.leases, 3) << "a draining worker leases nothing";
  EXPECT_THAT(orchestrator_.drains, ElementsAre("drain", "gone"));
}

TEST_F(LeaseLoopTest, EndsWhenItHadNoTrialForTheIdleTime) {
  limits_.idle = Backoff::Duration(0.2);
  device_.HoldBack("run 1");
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it is not idle
  device_.LetGo("run 1");
  EXPECT_TRUE(OwnEnd().ok());
  EXPECT_THAT(Results(), ElementsAre("1"));
  // Where nothing is held it may be gone before it has said that it drains.
  EXPECT_THAT(orchestrator_.drains, AnyOf(ElementsAre("drain", "gone"), ElementsAre("gone")));
}

TEST_F(LeaseLoopTest, EndsWhenItIsIdleBecauseNoOrchestratorAnswers) {
  limits_.idle = Backoff::Duration(0.2);
  orchestrator_.SetDown(true);
  Start();
  EXPECT_TRUE(OwnEnd().ok());
}

TEST_F(LeaseLoopTest, LeasesNoMoreTrialsThanItMay) {
  limits_.trials = 3;
  for (int i = 0; i < 6; ++i) orchestrator_.Add(absl::StrCat(i));
  Start();
  EXPECT_TRUE(OwnEnd().ok());
  EXPECT_THAT(Results(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(orchestrator_.leases, 3) << "none is leased only to be given back";
}

TEST_F(LeaseLoopTest, LeasesNoMoreTrialsThanItMayWhenItBuildsAhead) {
  limits_.trials = 5;
  for (int i = 0; i < 9; ++i) orchestrator_.Add(absl::StrCat(i));
  Start(/*ahead=*/2);
  EXPECT_TRUE(OwnEnd().ok());
  EXPECT_EQ(Results().size(), 5u);
  EXPECT_EQ(orchestrator_.leases, 5) << "none is leased only to be given back";
  EXPECT_THAT(GivenBack(), IsEmpty());
}

TEST_F(LeaseLoopTest, EndsAtItsTimeAndGivesBackWhatRuns) {
  drain_patience_ = Backoff::Duration(0.1);
  limits_.until = absl::Now() + absl::Milliseconds(300);
  orchestrator_.Add("1");
  device_.HoldBack("run 1");
  Start();
  EXPECT_TRUE(OwnEnd().ok());
  EXPECT_THAT(Results(), IsEmpty());
  EXPECT_THAT(GivenBack(), ElementsAre("1"));
}

TEST_F(LeaseLoopTest, GivesUpAResultWhenItIsDrainedAndTheOrchestratorStaysAway) {
  drain_patience_ = Backoff::Duration(0.3);
  orchestrator_.Add("1");
  device_.HoldBack("run 1");
  Start();
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  orchestrator_.SetDown(true);
  device_.LetGo("run 1");
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(orchestrator_.completed, IsEmpty());
}

TEST_F(LeaseLoopTest, GivesBackWhatTakesTooLongWhenItIsDrained) {
  drain_patience_ = Backoff::Duration(0.1);
  orchestrator_.Add("1");
  device_.HoldBack("run 1");
  Start();
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), IsEmpty());
  EXPECT_THAT(GivenBack(), ElementsAre("1"));
  EXPECT_THAT(orchestrator_.drains, ElementsAre("drain", "gone"));
}

TEST_F(LeaseLoopTest, DropsEverythingWhenItIsStopped) {
  device_.HoldBack("run 1");
  device_.HoldBack("prepare 2");
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start(/*ahead=*/1);
  ASSERT_TRUE(device_.WaitUntilSaid("run 1"));
  ASSERT_TRUE(device_.WaitUntilSaid("prepare 2"));
  loop_->Drain();
  loop_->Stop();
  EXPECT_TRUE(absl::IsAborted(End()));
  EXPECT_THAT(orchestrator_.completed, IsEmpty());
  EXPECT_EQ(orchestrator_.drains.back(), "gone");
}

TEST_F(LeaseLoopTest, TellsTheOrchestratorOfAHostFaultAndGoesOn) {
  device_.Break("1", absl::UnavailableError("no disk"));
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(WaitForCompleted(2));
  EXPECT_TRUE(End().ok());
  const v1::CompleteTrialRequest& fault = orchestrator_.completed[0].request;
  EXPECT_EQ(fault.host_fault().message(), "no disk");
  EXPECT_FALSE(fault.host_fault().gpu());
  EXPECT_FALSE(fault.lease_next()) << "who could not run a trial does not grab the next";
  EXPECT_THAT(Results(), ElementsAre("2"));
}

TEST_F(LeaseLoopTest, EndsAfterTwoFaultsOfTheGpu) {
  const absl::Status ecc = RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE (214): an error");
  device_.Break("1", ecc);
  device_.Break("2", absl::UnavailableError("no disk"));  // no fault of the GPU's
  device_.Break("4", ecc);
  for (const char* trial : {"1", "2", "3", "4", "5"}) orchestrator_.Add(trial);
  Start();
  thread_.join();
  EXPECT_THAT(std::string(status_.message()), HasSubstr("take it out of service"));
  EXPECT_THAT(Results(), ElementsAre("3"));
  ASSERT_THAT(orchestrator_.completed, SizeIs(4));
  EXPECT_TRUE(orchestrator_.completed[3].request.host_fault().gpu());
}

TEST_F(LeaseLoopTest, GoesOnAfterOneFaultOfTheGpu) {
  device_.Break("1", RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE (214): an error"));
  orchestrator_.Add("1");
  orchestrator_.Add("2");
  Start();
  ASSERT_TRUE(WaitForCompleted(2));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(Results(), ElementsAre("2"));
}

TEST_F(LeaseLoopTest, TellsOfABundleThatIsNotThere) {
  orchestrator_.Answer("bundle", absl::NotFoundError("nothing has this hash"));
  orchestrator_.Answer("bundle", absl::NotFoundError("nothing has this hash"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_THAT(orchestrator_.completed[0].request.host_fault().message(), HasSubstr("nothing has this hash"));
}

TEST_F(LeaseLoopTest, StoresArtifactsBeforeTheResultThatNamesThem) {
  device_.artifacts = {{v1::Blob::CUBIN, "a cubin"}, {v1::Blob::LOG, std::string(5 << 20, 'x')}};
  orchestrator_.Answer("blob", absl::UnavailableError("once more"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  ASSERT_THAT(orchestrator_.blobs, SizeIs(1));
  EXPECT_EQ(orchestrator_.blobs[0].hash(), Sha256("a cubin"));
  const v1::TrialResult& result = orchestrator_.completed[0].request.result();
  ASSERT_EQ(result.blobs_size(), 1);
  EXPECT_EQ(result.blobs(0).kind(), v1::Blob::CUBIN);
  EXPECT_EQ(result.blobs(0).hash(), Sha256("a cubin"));
  EXPECT_EQ(result.blobs(0).bytes(), 7);
  EXPECT_THAT(result.notes(), HasSubstr("LOG of 5 MB left out"));
}

TEST_F(LeaseLoopTest, SendsNoOutputErrorOrMetricThatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  v1::OutputError& error = *device_.result.add_errors();
  error.set_relative(infinity);  // beside a reference of zeros
  error.set_max_absolute(0.5);
  error.set_got(nan);
  error.set_expected(-infinity);
  auto& metrics = *device_.result.mutable_evidence()->add_launches()->mutable_metrics();
  metrics["waves"] = nan;
  metrics["occupancy"] = 50;
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  const v1::TrialResult& sent = orchestrator_.completed[0].request.result();
  EXPECT_EQ(sent.errors(0).relative(), std::numeric_limits<double>::max());
  EXPECT_EQ(sent.errors(0).max_absolute(), 0.5);
  EXPECT_TRUE(std::isfinite(sent.errors(0).got()));
  EXPECT_EQ(sent.errors(0).expected(), std::numeric_limits<double>::lowest());
  EXPECT_EQ(sent.evidence().launches(0).metrics().size(), 1u);
  EXPECT_THAT(sent.notes(), HasSubstr("1 metrics left out"));
}

TEST_F(LeaseLoopTest, LeavesOutAnArtifactThatIsRefused) {
  device_.artifacts = {{v1::Blob::CUBIN, "a cubin"}};
  orchestrator_.Answer("blob", absl::InvalidArgumentError("wrong hash"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_THAT(orchestrator_.completed[0].request.result().notes(), HasSubstr("CUBIN left out: wrong hash"));
}

TEST_F(LeaseLoopTest, WaitsForANameToBeFree) {
  orchestrator_.Answer("register", absl::UnavailableError("starting"));
  orchestrator_.Answer("register", absl::AlreadyExistsError("another process has this name"));
  orchestrator_.Add("1");
  Start();
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
}

TEST_F(LeaseLoopTest, EndsWhenItsNameStaysTaken) {
  for (int i = 0; i < 1000; ++i)
    orchestrator_.Answer("register", absl::AlreadyExistsError("another process has this name"));
  Start();
  thread_.join();
  EXPECT_TRUE(absl::IsAlreadyExists(status_)) << status_;
}

TEST_F(LeaseLoopTest, EndsWithOneLineWhenTheOrchestratorRejectsIt) {
  orchestrator_.Answer("register", absl::InvalidArgumentError("no such name"));
  Start();
  thread_.join();
  EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
  EXPECT_EQ(std::string(status_.message()),
            "registration with the orchestrator at 127.0.0.1:4317 rejected: no such name");
}

TEST_F(LeaseLoopTest, NamesTheOrchestratorThatItRegisteredWith) {
  std::ostringstream log;
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  orchestrator_.Answer("register", absl::UnavailableError("starting"));
  orchestrator_.Add("1");
  Start();
  EXPECT_TRUE(WaitForCompleted(1));
  EXPECT_TRUE(End().ok());
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(),
              HasSubstr("register: the orchestrator at 127.0.0.1:4317 does not answer (starting); retrying"));
  EXPECT_THAT(log.str(), HasSubstr("workers/fake registered with the orchestrator at 127.0.0.1:4317: a fake GPU"));
}

TEST_F(LeaseLoopTest, DrainsWhileItWaitsForAnOrchestratorThatIsNotThere) {
  orchestrator_.SetDown(true);
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.refused > 3; }));
  EXPECT_TRUE(End().ok());
}

TEST_F(LeaseLoopTest, RegistersAgainWhenALeaseFindsItUnknown) {
  Start();
  ASSERT_TRUE(orchestrator_.WaitFor([](const FakeOrchestrator& o) { return o.waiting == 1; }));
  orchestrator_.Forget();
  orchestrator_.Add("1");
  ASSERT_TRUE(WaitForCompleted(1));
  EXPECT_GE(orchestrator_.instances.size(), 2u);
}

}  // namespace
}  // namespace pawl
