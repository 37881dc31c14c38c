// Random operations against a model that only knows what was acknowledged: every iteration is counted once, and no
// trial is lost.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

constexpr int kOperations = 10'000;
constexpr int kWorkers = 4;
constexpr size_t kCampaigns = 6;  // unfinished at a time

std::string CampaignOf(const v1::Trial& trial) { return trial.name().substr(0, trial.name().find("/trials/")); }

// A lease as a worker remembers it, whatever became of it.
struct Held {
  int worker = 0;
  v1::LeaseTrialResponse leased;
};

class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<ScriptedWorker>(world_, "w" + std::to_string(i)));
    }
  }

  void Step() {
    using Operation = void (Model::*)();
    static constexpr std::pair<Operation, int> kOdds[] = {
        {&Model::Submit, 40},       {&Model::Lease, 120}, {&Model::CompleteFresh, 100}, {&Model::CompleteOld, 20},
        {&Model::Renew, 20},        {&Model::Pass, 20},   {&Model::GiveBack, 20},       {&Model::Pause, 10},
        {&Model::Resume, 20},       {&Model::Verify, 10}, {&Model::Cancel, 2},          {&Model::Expire, 2},
        {&Model::RestartAtOnce, 1},
    };
    int sum = 0;
    for (const auto& [operation, odds] : kOdds) sum += odds;
    int drawn = static_cast<int>(random_() % sum);
    for (const auto& [operation, odds] : kOdds) {
      if ((drawn -= odds) < 0) return (this->*operation)();
    }
  }

  void CompleteOld() { Complete(/*fresh=*/false); }

  // Completions of leases that were completed, given back or lost before.
  int odd_completions() const { return odd_completions_; }
  size_t campaigns() const { return campaigns_.size(); }

  // Lets everything come to an end, then looks at all of it.
  void Check() {
    world_.Pass(absl::Seconds(16));
    for (auto& worker : workers_) ASSERT_TRUE(worker->Register().ok());
    while (!paused_.empty()) Resume();
    for (const std::string& campaign : campaigns_) {  // paused for the workers that their start cost
      if (world_.Get(campaign).state() == v1::PAUSED) paused_.insert(campaign);
    }
    while (!paused_.empty()) Resume();
    workers_[0]->RunAll();
    std::set<int64_t> sequences;
    for (const std::string& campaign : campaigns_) {
      SCOPED_TRACE(campaign);
      const v1::Campaign summary = world_.Get(campaign);
      EXPECT_TRUE(summary.state() == v1::FINISHED || summary.state() == v1::CANCELLED || summary.state() == v1::FAILED);
      EXPECT_EQ(summary.state() == v1::CANCELLED, cancelled_.contains(campaign));
      EXPECT_FALSE(summary.verifying());
      std::set<int> iterations;
      std::map<int, int> leased, ended;  // by trial
      for (const v1::Event& event : world_.Events(campaign)) {
        EXPECT_TRUE(sequences.insert(event.sequence()).second);
        if (event.has_leased()) {
          EXPECT_EQ(++leased[event.leased().trial()], event.leased().attempt());
        }
        if (event.has_finished()) {
          EXPECT_EQ(++ended[event.finished().trial()], 1) << "a trial has one result";
          if (event.finished().has_verification()) continue;
          EXPECT_TRUE(iterations.insert(event.finished().iteration().number()).second);
        }
      }
      EXPECT_EQ(iterations.size(), world_.Iterations(campaign).size());
      const v1::Counts& counts = summary.counts();
      EXPECT_EQ(static_cast<int>(iterations.size()), counts.tried() + iterations.contains(0));
      EXPECT_EQ(counts.kept() + counts.reverted() + counts.rejected(), counts.tried());
      EXPECT_EQ(counts.running(), 0);
      if (summary.state() == v1::FINISHED) {
        EXPECT_EQ(iterations.size(), 5u) << "no trial was lost";
      }
      for (const std::string& trial : completed_[campaign]) {
        const int number = std::stoi(trial.substr(trial.rfind('/') + 1));
        EXPECT_EQ(ended[number], 1) << trial << " was acknowledged";
      }
    }
    EXPECT_EQ(sequences.size(), static_cast<size_t>(sequences.empty() ? 0 : *sequences.rbegin())) << "no gaps";
    EXPECT_EQ(world_->leases_out(), 0);
  }

 private:
  size_t Unfinished() {
    size_t unfinished = 0;
    for (const std::string& campaign : open_) unfinished += !world_.Get(campaign).has_end_time();
    if (unfinished < open_.size()) {
      std::erase_if(open_, [&](const std::string& campaign) { return world_.Get(campaign).has_end_time(); });
    }
    return unfinished;
  }

  void Submit() {
    if (Unfinished() >= kCampaigns) return;
    campaigns_.push_back(world_.Submit());
    open_.insert(campaigns_.back());
  }

  void Lease() {
    const int worker = static_cast<int>(random_() % kWorkers);
    const absl::StatusOr<v1::LeaseTrialResponse> leased = workers_[worker]->Lease();
    ASSERT_TRUE(leased.ok()) << leased.status();
    if (!leased->has_trial()) return;
    EXPECT_FALSE(completed_[CampaignOf(leased->trial())].contains(leased->trial().name())) << "it has a result";
    attempts_[leased->trial().name()] = leased->trial().attempt();
    held_.push_back({worker, *leased});
  }

  // Of a lease that was kept to the end, or of any that ever was: late, double, stale, cancelled.
  void Complete(bool fresh) {
    std::vector<Held>& from = fresh ? held_ : old_;
    if (from.empty()) return;
    const size_t at = random_() % from.size();
    const Held held = from[at];
    odd_completions_ += !fresh;
    if (fresh) {
      from.erase(from.begin() + at);
      old_.push_back(held);
    }
    const v1::Trial& trial = held.leased.trial();
    std::set<std::string>& completed = completed_[CampaignOf(trial)];
    const absl::StatusOr<v1::CompleteTrialResponse> answer =
        workers_[held.worker]->Complete(held.leased, NothingHelps, random_() % 2 == 0);
    if (answer.ok()) {
      EXPECT_TRUE(completed.insert(trial.name()).second) << trial.name() << " was counted twice";
      EXPECT_EQ(attempts_[trial.name()], trial.attempt()) << "it was leased again";
      EXPECT_TRUE(!cancelled_.contains(CampaignOf(trial)) || trial.purpose() == v1::TRIAL_PURPOSE_VERIFY);
      if (answer->next().has_trial()) {
        attempts_[answer->next().trial().name()] = answer->next().trial().attempt();
        held_.push_back({held.worker, answer->next()});
      }
      return;
    }
    switch (answer.status().code()) {
      case absl::StatusCode::kAlreadyExists:  // counted before, or put aside
        EXPECT_FALSE(cancelled_.contains(CampaignOf(trial)));
        break;
      case absl::StatusCode::kAborted:
        EXPECT_GT(attempts_[trial.name()], trial.attempt());
        break;
      case absl::StatusCode::kFailedPrecondition:
        EXPECT_TRUE(cancelled_.contains(CampaignOf(trial)));
        break;
      default:
        ADD_FAILURE() << answer.status();
    }
  }

  void Renew() {
    if (held_.empty()) return;
    const Held& held = held_[random_() % held_.size()];
    const absl::StatusOr<v1::RenewLeaseResponse> renewed = workers_[held.worker]->Renew(held.leased.lease());
    EXPECT_TRUE(renewed.ok() || renewed.status().code() == absl::StatusCode::kAborted) << renewed.status();
  }

  void CompleteFresh() { Complete(/*fresh=*/true); }
  void Pass() { world_.Pass(absl::Seconds(random_() % 4)); }
  // All that is out runs out; the workers do not know it yet.
  void Expire() { world_.Pass(absl::Seconds(16)); }
  void RestartAtOnce() { world_.Restart(); }

  void Pause() {
    if (open_.empty()) return;
    v1::PauseCampaignRequest request;
    request.set_name(*std::next(open_.begin(), random_() % open_.size()));
    if (world_->Pause(request).ok()) paused_.insert(request.name());
  }

  void Resume() {
    if (paused_.empty()) return;
    v1::ResumeCampaignRequest request;
    request.set_name(*paused_.begin());
    paused_.erase(paused_.begin());
    const absl::Status status = world_->Resume(request).status();
    EXPECT_TRUE(status.ok() || cancelled_.contains(request.name())) << status;
  }

  void Verify() {
    if (campaigns_.empty()) return;
    v1::VerifyIterationRequest request;
    request.set_name(campaigns_[random_() % campaigns_.size()] + "/iterations/0");
    (void)world_->Verify(request);
  }

  void GiveBack() {
    if (held_.empty()) return;
    const size_t at = random_() % held_.size();
    const Held held = held_[at];
    held_.erase(held_.begin() + at);
    old_.push_back(held);
    (void)workers_[held.worker]->GiveBack(held.leased.lease());
  }

  void Cancel() {
    if (open_.empty()) return;
    v1::CancelCampaignRequest request;
    request.set_name(*open_.begin());
    if (world_->Cancel(request).ok()) cancelled_.insert(request.name());
  }

  int odd_completions_ = 0;
  std::mt19937 random_;
  World world_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  std::vector<std::string> campaigns_;
  std::set<std::string> open_, paused_, cancelled_;
  std::vector<Held> held_, old_;
  std::map<std::string, int> attempts_;                     // the latest of each trial
  std::map<std::string, std::set<std::string>> completed_;  // trials whose result was acknowledged, by campaign
};

TEST(ModelTest, CountsEveryIterationOnceAndLosesNoTrial) {
  const char* fixed = std::getenv("PAWL_TEST_SEED");
  const uint32_t seed = fixed != nullptr ? std::stoul(fixed) : std::random_device{}();
  SCOPED_TRACE("PAWL_TEST_SEED=" + std::to_string(seed));
  Model model(seed);
  for (int i = 0; i < kOperations && !HasFatalFailure(); ++i) model.Step();
  model.Check();
  EXPECT_GT(model.campaigns(), 50u);
}

TEST(ModelTest, CountsResultsOnceHoweverOftenLateAndOutOfOrderTheyCome) {
  const int wanted = SoakCount(500, 10'000);
  int completions = 0, models = 0;
  while (completions < wanted && !testing::Test::HasFailure()) {
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE("PAWL_TEST_SEED=" + std::to_string(seed));
    Model model(seed);
    while (model.odd_completions() < 500 && !testing::Test::HasFatalFailure()) {
      model.Step();
      model.CompleteOld();
    }
    model.Check();
    EXPECT_GT(model.campaigns(), 5u);
    completions += model.odd_completions();
    ++models;
  }
  ReportPromise(2, std::to_string(completions) + " completions that were duplicated, late or out of order, in " +
                       std::to_string(models) + " runs against the model");
}

}  // namespace
}  // namespace pawl
