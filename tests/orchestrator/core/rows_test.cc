// What the store shows of a campaign is what its events make of it, whatever happened.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "google/protobuf/util/message_differencer.h"
#include "orchestrator/core/stored_campaign.h"
#include "tests/orchestrator/engine/campaign_script.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

constexpr int kSeeds = 80;
constexpr int kOperations = 120;
constexpr int kWorkers = 3;

std::string DifferenceOf(const google::protobuf::Message& replayed, const google::protobuf::Message& stored) {
  std::string text;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(replayed, stored);
  return text;
}

// Every row of the campaign against the state that its events give.
void ExpectRowsAreReplayed(Store& store, int64_t number) {
  SCOPED_TRACE(CampaignName(number));
  const absl::StatusOr<StoredCampaign> replayed = ReadCampaign(store, number);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  v1::Campaign summary = replayed->state->summary();
  summary.set_last_sequence(replayed->last_sequence);
  EXPECT_EQ(DifferenceOf(summary, store.GetCampaign(number)->value()), "");
  std::map<int, v1::Iteration> iterations;
  for (const v1::Iteration& iteration : replayed->state->iterations()) iterations[iteration.number()] = iteration;
  const std::vector<v1::Iteration> rows = store.ListIterations({.campaign = number, .limit = 1000}).value();
  ASSERT_EQ(rows.size(), iterations.size());
  v1::Counts counts;  // from the rows, by the definitions of campaign.proto
  for (const v1::Iteration& row : rows) {
    EXPECT_EQ(DifferenceOf(iterations.at(row.number()), row), "") << row.name();
    if (row.number() == 0) continue;
    counts.set_untried(counts.untried() + row.untried());
    counts.set_tried(counts.tried() + !row.untried());
    counts.set_kept(counts.kept() + (row.verdict() == v1::KEPT));
    counts.set_reverted(counts.reverted() + (row.verdict() == v1::REVERTED));
    counts.set_rejected(counts.rejected() + (row.verdict() == v1::REJECTED && !row.untried()));
  }
  counts.set_running(summary.counts().running());
  EXPECT_EQ(DifferenceOf(counts, summary.counts()), "");
  EXPECT_EQ(counts.tried(), counts.kept() + counts.reverted() + counts.rejected());
  // By speedup, which the rows also have in a column.
  double before = std::numeric_limits<double>::infinity();
  const std::vector<v1::Iteration> fastest =
      store.ListIterations({.campaign = number, .order = v1::ITERATION_ORDER_SPEEDUP, .limit = 1000}).value();
  for (const v1::Iteration& row : fastest) {
    EXPECT_LE(row.speedup_over_start(), before) << row.name();
    before = row.speedup_over_start();
  }
}

// Every third change is one of another variant than the best.
class WanderingChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    const v1::Iteration* best = campaign.best();
    if (best == nullptr) return std::nullopt;
    for (const v1::Iteration& other : campaign.iterations()) {
      const bool parent = &other != best && campaign.IsMeasured(other) && campaign.open_trials().empty() &&
                          campaign.SourceIdOf(other.number()) == campaign.SourceIdOf(best->number());
      if (!parent || campaign.next_iteration() % 3 != 0) continue;
      if (std::optional<Choice> choice = NextNeighbour(campaign, other)) return choice;
    }
    return NextNeighbour(campaign, *best);
  }
};

// Campaigns to which anything may happen.
class RandomCampaigns {
 public:
  explicit RandomCampaigns(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kWorkers; ++i) workers_.push_back(std::make_unique<ScriptedWorker>(world_, std::to_string(i)));
    Submit();
  }

  void Step() {
    using Operation = void (RandomCampaigns::*)();
    static constexpr std::pair<Operation, int> kOdds[] = {
        {&RandomCampaigns::Finish, 100}, {&RandomCampaigns::Lease, 60},  {&RandomCampaigns::Propose, 12},
        {&RandomCampaigns::Pause, 6},    {&RandomCampaigns::Resume, 12}, {&RandomCampaigns::Pass, 10},
        {&RandomCampaigns::Fault, 6},    {&RandomCampaigns::Submit, 4},  {&RandomCampaigns::Verify, 3},
        {&RandomCampaigns::Edit, 3},     {&RandomCampaigns::Expire, 1},  {&RandomCampaigns::Cancel, 1},
        {&RandomCampaigns::Restart, 1},
    };
    int sum = 0;
    for (const auto& [operation, odds] : kOdds) sum += odds;
    int drawn = static_cast<int>(random_() % sum);
    for (const auto& [operation, odds] : kOdds) {
      if ((drawn -= odds) < 0) return (this->*operation)();
    }
  }

  void Check() {
    for (int64_t number = 1; number <= static_cast<int64_t>(campaigns_.size()); ++number) {
      ExpectRowsAreReplayed(world_.store(), number);
    }
  }

  // How often each thing happened that rows could get wrong.
  void Count(std::map<std::string, int>* seen) {
    (*seen)["steps"] += steps_;
    for (const std::string& campaign : campaigns_) {
      for (const v1::Event& event : world_.Events(campaign)) {
        ++(*seen)[absl::StrCat("event ", event.event_case())];
        (*seen)["revised"] += event.finished().revised_size();
        (*seen)["taken back"] += event.finished().total_gain().taken_back_size();
        (*seen)["untried"] += event.finished().iteration().untried();
      }
      const v1::Counts counts = world_.Get(campaign).counts();
      (*seen)["kept"] += counts.kept();
      (*seen)["reverted"] += counts.reverted();
      (*seen)["rejected"] += counts.rejected();
    }
  }

 private:
  bool OneIn(int n) { return random_() % n == 0; }
  const std::string& AnyCampaign() { return campaigns_[random_() % campaigns_.size()]; }

  void Submit() {
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(5 + static_cast<int>(random_() % 30));
    spec.mutable_keep()->set_skip_sanitizer(OneIn(4));
    if (OneIn(3)) spec.mutable_budget()->set_reverts_in_a_row(6);
    const bool portfolio = OneIn(3);
    if (portfolio) {
      v1::Goal& goal = *spec.mutable_goal();
      (*goal.mutable_sizes())["small"] = 0.5;
      (*goal.mutable_sizes())["main"] = 0.5;
      goal.set_speedup(1.2);
      goal.set_portfolio(3);
    }
    campaigns_.push_back(world_.Submit(spec, WideBundle()));
    if (portfolio) portfolios_.insert(campaigns_.back());
  }

  // The same pairs at every size that the trial is timed at, some of them slower; of a total also the ladder.
  void TimeAtSizes(const v1::Trial& trial, v1::TrialResult* result) {
    if (!portfolios_.contains(trial.name().substr(0, trial.name().find("/trials/")))) return;
    if (result->has_failure() || !result->passed_over().empty()) return;
    const bool total = trial.purpose() == v1::TRIAL_PURPOSE_TOTAL;
    for (const char* size : {"small", "main"}) {
      if (total && !trial.interim()) {
        v1::SizeTime& time = *result->add_sizes();
        time.set_size(size);
        time.set_start_us(100);
        time.set_best_us(50 + static_cast<double>(random_() % 100));
      }
    }
    if (trial.has_goal() && trial.goal().sizes_size() < 2) return;
    if (!trial.has_parent()) AddPairs(result->mutable_pairs(), 100, 100, 12);
    for (auto* pairs : {result->mutable_pairs(), result->mutable_confirming_pairs()}) {
      const auto at_main = *pairs;
      const double factor = OneIn(3) ? 1.4 : 1.0;
      for (v1::PairSample& pair : *pairs) pair.set_size("main");
      for (v1::PairSample pair : at_main) {
        pair.set_size("small");
        pair.set_candidate_us(pair.candidate_us() * factor);
        pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
        *pairs->Add() = std::move(pair);
      }
    }
  }

  v1::TrialResult Result(const v1::Trial& trial) {
    const double parent = trial.parent_us();
    if (!trial.has_parent()) return OneIn(12) ? FailedCheck(v1::CHECK_TOLERANCE, "wrong") : MeasuredStart(100);
    v1::TrialResult lacking;
    lacking.set_passed_over("not in the recording");
    if (trial.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      if (OneIn(6)) return FailedCheck(v1::CHECK_RACECHECK, "a race");
      if (OneIn(8)) return lacking;
      return Measured(parent, parent * (OneIn(4) ? 1.3 : 0.4 + 0.01 * static_cast<double>(random_() % 50)));
    }
    switch (random_() % 8) {
      case 0:
        return FailedCheck(v1::CHECK_TOLERANCE, "wrong");
      case 1:
        return lacking;
      case 2:
      case 3:
        return Measured(parent, parent * 1.1);
      default:
        return Measured(parent, parent * (0.75 + 0.01 * static_cast<double>(random_() % 20)));
    }
  }

  void Lease() {
    const size_t worker = random_() % workers_.size();
    const absl::StatusOr<v1::LeaseTrialResponse> leased = workers_[worker]->Lease();
    if (leased.ok() && leased->has_trial()) held_.push_back({worker, *leased});
  }

  void Finish() {
    if (held_.empty()) return Lease();
    const auto [worker, leased] = Take();
    (void)workers_[worker]->Complete(leased, [&](const v1::Trial& trial) {
      v1::TrialResult result = Result(trial);
      if (trial.step()) result.clear_confirming_pairs();  // as a worker does
      steps_ += trial.step();
      TimeAtSizes(trial, &result);
      return result;
    });
  }

  void Fault() {
    if (held_.empty()) return;
    const auto [worker, leased] = Take();
    (void)(OneIn(2) ? workers_[worker]->GiveBack(leased.lease())
                    : workers_[worker]->HostFault(leased.lease(), "no compiler"));
  }

  std::pair<size_t, v1::LeaseTrialResponse> Take() {
    const size_t at = random_() % held_.size();
    const auto taken = held_[at];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    return taken;
  }

  void Propose() {
    v1::ProposeChangeRequest request;
    request.set_campaign(AnyCampaign());
    request.set_author("ann");
    const v1::Bundle bundle = WideBundle();
    const v1::Variable& variable = bundle.variables(static_cast<int>(random_() % bundle.variables_size()));
    request.mutable_change()->set_variable(variable.name());
    request.mutable_change()->set_to(variable.values(static_cast<int>(random_() % variable.values_size())));
    (void)world_->Propose(request);
  }

  void Edit() {
    v1::ProposeChangeRequest request;
    request.set_campaign(AnyCampaign());
    request.set_author("an agent");
    request.mutable_change()->mutable_source()->set_name("note");
    request.mutable_change()->mutable_source()->set_patch(
        "--- a/tiny.cu\n+++ b/tiny.cu\n@@ -1 +1,2 @@\n"
        " extern \"C\" __global__ void copy(const float* in, float* out, int n) {}\n+// edited\n");
    (void)world_->Propose(request);
  }

  void Pause() {
    v1::PauseCampaignRequest request;
    request.set_name(AnyCampaign());
    (void)world_->Pause(request);
  }

  void Resume() {
    v1::ResumeCampaignRequest request;
    request.set_name(AnyCampaign());
    (void)world_->Resume(request);
  }

  void Cancel() {
    v1::CancelCampaignRequest request;
    request.set_name(AnyCampaign());
    request.set_reason("enough");
    (void)world_->Cancel(request);
  }

  void Verify() {
    v1::VerifyIterationRequest request;
    request.set_name(AnyCampaign() + "/iterations/1");
    (void)world_->Verify(request);
  }

  void Pass() { world_.Pass(absl::Seconds(random_() % 5)); }

  void Expire() {
    world_.Pass(absl::Seconds(16));
    for (auto& worker : workers_) (void)worker->Register();
    held_.clear();
  }

  void Restart() { world_.Restart(); }

  std::mt19937 random_;
  const WanderingChooser chooser_;
  World world_{{}, 0, &chooser_};
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  std::vector<std::string> campaigns_;
  std::set<std::string> portfolios_;  // those that are for one
  std::vector<std::pair<size_t, v1::LeaseTrialResponse>> held_;
  int steps_ = 0;  // trials of expeditions
};

TEST(RowsTest, AreWhatTheEventsMakeOfTheCampaignsWhateverHappens) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomCampaigns campaigns(seed);
    for (int i = 0; i < kOperations; ++i) {
      campaigns.Step();
      if (i % 10 == 9) campaigns.Check();
    }
    campaigns.Check();
    campaigns.Count(&seen);
  }
  if (testing::Test::HasFailure()) return;
  // Sequences that lack one of these would prove nothing about it.
  for (const char* what : {"revised", "taken back", "untried", "kept", "reverted", "rejected", "steps"}) {
    EXPECT_GT(seen[what], 20) << what;
  }
  for (const v1::Event::EventCase kind :
       {v1::Event::kSubmitted, v1::Event::kPlanned, v1::Event::kLeased, v1::Event::kLost, v1::Event::kFinished,
        v1::Event::kPaused, v1::Event::kResumed, v1::Event::kEnded, v1::Event::kProposed, v1::Event::kDropped,
        v1::Event::kLeg}) {
    EXPECT_GT(seen[absl::StrCat("event ", kind)], 0) << kind;
  }
}

// A campaign with a total gain that revises, one change that the recording lacks, and counts to get wrong.
std::vector<v1::Event> MadeEvents() {
  v1::CampaignSpec spec;
  spec.mutable_goal()->set_size("main");
  spec.mutable_goal()->set_speedup(1.9);
  CampaignScript script(spec, WideBundle());
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 90));
  v1::TrialResult lacking;
  lacking.set_passed_over("not in the recording");
  script.Run(lacking);
  script.Run(Measured(90, 95));
  script.Run(Measured(90, 50));
  EXPECT_TRUE(script.Decide()->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL);
  script.FinishTotal(Measured(100, 60));
  return script.events();
}

// As version 3 of the schema had it: no revisions in the events, and rows that do not follow from them.
class OldDatabase {
 public:
  OldDatabase() : folder_("pawl-old-"), file_(folder_.path() / "pawl.db") {
    std::unique_ptr<Store> store = Store::Open({.file = file_}).value();
    Writes writes;
    for (v1::Event event : MadeEvents()) {
      event.set_campaign("campaigns/1");
      if (event.has_submitted()) event.mutable_submitted()->set_bundle_hash(Sha256(Bundle()));
      if (event.has_finished()) event.mutable_finished()->clear_revised();
      if (event.finished().has_iteration()) event.mutable_finished()->mutable_iteration()->clear_untried();
      writes.events.push_back(std::move(event));
    }
    v1::Campaign& summary = writes.campaigns.emplace_back();
    summary.set_name("campaigns/1");
    summary.set_state(v1::RUNNING);
    writes.blobs.push_back({v1::Blob::BUNDLE, Sha256(Bundle()), Bundle()});
    EXPECT_EQ(store->Commit(&writes), absl::OkStatus());
    store.reset();
    const auto connection = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0).value();
    EXPECT_EQ(connection->Execute("DROP TABLE archived; DROP TABLE spending"),
              absl::OkStatus());  // of versions 5 and 6
    EXPECT_EQ(connection->Execute("PRAGMA user_version = 3"), absl::OkStatus());
  }

  std::unique_ptr<Store> Open() { return Store::Open({.file = file_}).value(); }

 private:
  static std::string Bundle() { return WideBundle().SerializeAsString(); }

  TemporaryFolder folder_;
  std::filesystem::path file_;
};

TEST(OldRowsTest, AreReplacedByWhatTheEventsSayWhenTheDatabaseIsOpened) {
  OldDatabase old;
  std::unique_ptr<Store> store = old.Open();
  ASSERT_TRUE(store->RowsOutdated().value());
  const double before = store->GetIteration(1, 4)->value().speedup_over_start();
  ASSERT_EQ(BringRowsUpToDate(*store), absl::OkStatus());
  ExpectRowsAreReplayed(*store, 1);
  EXPECT_NEAR(before, 2.0, 0.01);
  EXPECT_NEAR(store->GetIteration(1, 4)->value().speedup_over_start(), 100 / 60., 0.01);
  EXPECT_TRUE(store->GetIteration(1, 2)->value().untried());
  const v1::Counts counts = store->GetCampaign(1)->value().counts();
  EXPECT_EQ(counts.tried(), 3);
  EXPECT_EQ(counts.kept(), 2);
  EXPECT_EQ(counts.reverted(), 1);
  EXPECT_EQ(counts.untried(), 1);
  EXPECT_FALSE(store->RowsOutdated().value());
  store.reset();
  EXPECT_FALSE(old.Open()->RowsOutdated().value()) << "once";
}

TEST(OldRowsTest, AreBroughtUpToDateByAnOrchestratorThatGoesOnWithThem) {
  OldDatabase old;
  std::unique_ptr<Store> store = old.Open();
  const NeighbourChooser chooser;
  WatchHub hub;
  Orchestrator orchestrator(*store, chooser, hub, [] { return absl::FromUnixSeconds(1'790'000'100); }, {});
  ASSERT_EQ(orchestrator.Load(), absl::OkStatus());
  ExpectRowsAreReplayed(*store, 1);
  v1::CancelCampaignRequest cancel;
  cancel.set_name("campaigns/1");
  EXPECT_EQ(orchestrator.Cancel(cancel)->state(), v1::CANCELLED);
  ExpectRowsAreReplayed(*store, 1);
}

TEST(OldEventsTest, GiveTheStateThatNewOnesGive) {
  CampaignState now("campaigns/7", WideBundle()), old("campaigns/7", WideBundle());
  for (v1::Event event : MadeEvents()) {
    now.Apply(event);
    if (event.has_finished()) event.mutable_finished()->clear_revised();
    old.Apply(event);
  }
  EXPECT_EQ(DifferenceOf(now.summary(), old.summary()), "");
  for (size_t i = 0; i < now.iterations().size(); ++i) {
    EXPECT_EQ(DifferenceOf(now.iterations()[i], old.iterations()[i]), "");
  }
}

}  // namespace
}  // namespace pawl
