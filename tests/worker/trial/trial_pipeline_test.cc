// The order of a trial's steps, and every way in which it ends early, without a GPU.
#include "worker/trial/trial_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"
#include "worker/process/host_fault.h"
#include "worker/validate/other_inputs.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;

using Log = std::vector<std::string>;

Log operator+(Log a, const Log& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What validating at every size asks of a GPU.
Log Validated(int repeats, bool self_test = false) {
  Log log;
  for (const char* size : {"hidden", "hidden", "small", "main"}) {
    log.push_back(absl::StrCat("call ", size, " x", repeats));
    log.push_back(absl::StrCat("check ", size, self_test ? " self-test" : ""));
  }
  return log;
}

const Log kCompared = {"compare main 12", "check timed main"};
const Log kConfirmed = {"restart", "compare main 36", "check timed main"};
const Log kRestarted = {"restart"};
const Log kSanitized = {"sanitize hidden hidden small"};
const Log kProfiled = {"profile main"};

// The sizes that are drawn for what is about to be kept: both hidden ones that the bundle allows, one beside main, and
// one between that and the hidden ones.
const Log kMoreSizes = {"call hidden x2", "check hidden", "call hidden x2", "check hidden",
                        "call beside x2", "check beside", "call beside x2", "check beside"};
const Log kSanitizedLarge = {"memcheck main"};  // main has too much memory for racecheck and initcheck
const Log kReferenceTried = {"reference call small x1", "reference check small"};

// compute-sanitizer runs later, over several of them.
const Log kKept = Validated(2) + kCompared + kConfirmed + kMoreSizes + Validated(20) + kProfiled;
// It begins before the validation that it runs beside.
const Log kVerified = Validated(2) + kCompared + kConfirmed + kSanitized + kMoreSizes + Validated(20) + kProfiled;
const Log kAlone = Validated(20, true) + kReferenceTried + kCompared + kProfiled + Log{"copy", "baseline"};

v1::Variant Tile(int value) {
  v1::Variant variant;
  (*variant.mutable_values())["TILE"] = value;
  return variant;
}

v1::Failure Failure(v1::Check check, const std::string& message = "it failed") {
  v1::Failure failure;
  failure.set_check(check);
  failure.set_message(message);
  return failure;
}

v1::OutputError WrongOutput() {
  v1::OutputError error;
  error.set_wrong(10);
  error.set_first_wrong(-1);
  error.set_max_absolute(1);
  error.set_relative(1);
  return error;
}

class TrialPipelineTest : public testing::Test {
 protected:
  TrialPipelineTest() {
    *trial_.mutable_variant() = Tile(64);
    *trial_.mutable_parent() = Tile(32);
    trial_.set_size("main");
  }

  // The start of a campaign.
  void Alone() {
    trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
    trial_.clear_parent();
    *trial_.mutable_variant() = Tile(32);
  }
  void Verify() { trial_.set_purpose(v1::TRIAL_PURPOSE_VERIFY); }
  void Total() { trial_.set_purpose(v1::TRIAL_PURPOSE_TOTAL); }
  // Iterations 1, 2, ... with these tiles.
  void Sanitize(const std::vector<int>& tiles) {
    trial_.set_purpose(v1::TRIAL_PURPOSE_SANITIZE);
    trial_.clear_parent();
    for (const int tile : tiles) {
      v1::UnsanitizedVariant& kept = *trial_.add_unsanitized();
      kept.set_iteration(trial_.unsanitized_size());
      *kept.mutable_variant() = Tile(tile);
    }
  }
  // One that is not timed, with less memory than main.
  void AddSizeBetween() {
    v1::Size* main = bundle_.mutable_sizes(1);
    v1::Size between = *main;
    between.set_name("between");
    (*between.mutable_values())["N"] = 65536;
    *bundle_.add_sizes() = *main;
    *main = between;
  }
  void Faster() { gpu_.processes = {{.candidate_us = 180, .parent_us = 200}}; }

  // The start with the launches and the scratch of `edited`, as a patch of kernel.toml makes it.
  void Edit(const v1::Bundle& edited) {
    bundle_.mutable_goal()->set_speedup(1.5);  // without one no bundle can be read
    const std::string before = ImplementationToml(bundle_), after = ImplementationToml(edited);
    std::string patch =
        absl::StrCat("--- a/kernel.toml\n+++ b/kernel.toml\n@@ -1,", std::count(before.begin(), before.end(), '\n'),
                     " +1,", std::count(after.begin(), after.end(), '\n'), " @@\n");
    for (const auto& [mark, text] : {std::pair{"-", before}, std::pair{"+", after}}) {
      for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
        absl::StrAppend(&patch, mark, line, "\n");
      }
    }
    const absl::StatusOr<ImplementationState> made =
        PatchImplementation(bundle_, {ImplementationText(bundle_), StartVariant(bundle_)}, patch);
    ASSERT_TRUE(made.ok()) << made.status();
    trial_.set_patched_source(made->text);
    *trial_.mutable_variant() = made->variant;
  }
  absl::StatusOr<std::unique_ptr<TrialBuild>> Build() {
    return TrialBuilder(gpu_).Build(trial_, std::make_shared<const v1::Bundle>(bundle_), observer_);
  }

  absl::StatusOr<TrialOutcome> TryRun() {
    absl::StatusOr<std::unique_ptr<TrialBuild>> build = Build();
    if (!build.ok()) return build.status();
    absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu_, **build, observer_);
    // A runner in which a candidate was wrong: apart from the steps.
    replaced_runner_ =
        outcome.ok() && outcome->result.has_failure() && !gpu_.log.empty() && gpu_.log.back() == "restart";
    if (replaced_runner_) gpu_.log.pop_back();
    return outcome;
  }

  v1::TrialResult Run() {
    absl::StatusOr<TrialOutcome> outcome = TryRun();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok()) return v1::TrialResult();
    artifacts_ = std::move(outcome->artifacts);
    return outcome->result;
  }

  // The result of a candidate that fails, and where.
  v1::Failure RunToFailure() {
    const v1::TrialResult result = Run();
    EXPECT_TRUE(result.has_failure());
    EXPECT_FALSE(result.profiled());
    return result.failure();
  }

  std::string RunToFault() {
    const absl::StatusOr<TrialOutcome> outcome = TryRun();
    EXPECT_FALSE(outcome.ok());
    return std::string(outcome.status().message());
  }

  v1::Bundle bundle_ = CopyBundle();
  v1::Trial trial_;
  ScriptedGpu gpu_;
  ScriptedObserver observer_;
  std::vector<Artifact> artifacts_;
  bool replaced_runner_ = false;
};

// Against a parent.

TEST_F(TrialPipelineTest, TakesWhatWasBuiltAhead) {
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  TrialBuilder builder(gpu_);
  v1::ForeseenVariant next;
  *next.mutable_variant() = Tile(64);
  builder.Expect(trial_, bundle, {next});
  const auto tile_64 = [this] {
    const Log compiled = gpu_.compiled();
    return std::count_if(compiled.begin(), compiled.end(),
                         [](const std::string& what) { return absl::StrContains(what, "TILE=64"); });
  };
  while (tile_64() == 0) absl::SleepFor(absl::Milliseconds(1));
  const absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE((*build)->built_ahead);
  EXPECT_EQ(tile_64(), 1) << "it is not compiled again";
  Faster();
  const absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu_, **build, observer_);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->result.built_ahead());
  ASSERT_FALSE(outcome->result.stages().empty());
  EXPECT_EQ(outcome->result.stages(0).stage(), v1::STAGE_BUILD) << "the static check took none of this trial's time";
  EXPECT_FALSE(outcome->result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(kKept)) << "every gate as for any other";
  EXPECT_FALSE(Run().built_ahead()) << "a variant that nobody expected";
}

// Of an edit the worker has the patch, and the sources of the trial that it measures.
TEST_F(TrialPipelineTest, BuildsAnEditThatWaitsAhead) {
  bundle_.mutable_source()->set_text("#define ONE\n" + bundle_.source().text());
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  TrialBuilder builder(gpu_);
  v1::ForeseenVariant next;
  *next.mutable_variant() = trial_.parent();
  next.mutable_change()->mutable_source()->set_name("two");
  next.mutable_change()->mutable_source()->set_patch("@@ -1 +1 @@\n-#define ONE\n+#define TWO\n");
  v1::ForeseenVariant other = next;  // it does not fit
  other.mutable_change()->mutable_source()->set_patch("@@ -1 +1 @@\n-#define THREE\n+#define TWO\n");
  builder.Expect(trial_, bundle, {other, next});
  while (gpu_.compiled().empty()) absl::SleepFor(absl::Milliseconds(1));
  trial_.set_patched_source(absl::StrReplaceAll(bundle_.source().text(), {{"ONE", "TWO"}}));
  *trial_.mutable_variant() = trial_.parent();
  const absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE((*build)->built_ahead);
  Faster();
  const absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu_, **build, observer_);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  for (const v1::BesideTime& beside : outcome->result.beside()) EXPECT_EQ(beside.change().source().patch(), "");
}

TEST_F(TrialPipelineTest, SaysWhenEachStageBeganAndWhatRanBesideIt) {
  Faster();
  Verify();
  gpu_.sanitizing.seconds = 0.25;
  gpu_.after = [](const std::string& what) {
    if (absl::StrContains(what, "compare")) absl::SleepFor(absl::Milliseconds(5));
  };
  const v1::TrialResult result = Run();
  ASSERT_FALSE(result.has_failure()) << result.failure().message();
  std::vector<v1::Stage> stages;
  double end = 0;
  for (const v1::StageTime& time : result.stages()) {
    stages.push_back(time.stage());
    ASSERT_TRUE(time.has_begin());
    EXPECT_GE(time.begin(), end - 1e-9) << "stages of a trial do not overlap";
    end = time.begin() + time.seconds();
  }
  EXPECT_LE(end, observer_.seconds());
  // Building again is for sizes that only what is about to be kept meets; the static check is too short to be seen.
  std::erase(stages, v1::STAGE_STATIC_CHECK);
  EXPECT_THAT(stages, ElementsAre(v1::STAGE_BUILD, v1::STAGE_VALIDATE, v1::STAGE_MEASURE, v1::STAGE_VALIDATE,
                                  v1::STAGE_BUILD, v1::STAGE_VALIDATE, v1::STAGE_PROFILE));
  ASSERT_EQ(result.beside_size(), 1);
  EXPECT_EQ(result.beside(0).kind(), v1::BesideTime::SANITIZER);
  EXPECT_EQ(result.beside(0).seconds(), 0.25);
  EXPECT_GT(result.beside(0).begin(), result.stages(result.stages_size() - 5).begin()) << "after it was compared";
  EXPECT_LT(result.beside(0).begin(), result.stages(result.stages_size() - 1).begin());
}

TEST_F(TrialPipelineTest, ReportsWhatWasBuiltAheadWithTheTrialThatItRanBeside) {
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  TrialBuilder builder(gpu_);
  trial_.set_name("campaigns/7/trials/13");
  v1::ForeseenVariant next;
  *next.mutable_variant() = Tile(64);
  next.set_parent(3);
  next.mutable_change()->set_variable("TILE");
  next.mutable_change()->set_to(64);
  builder.Expect(trial_, bundle, {next});
  while (gpu_.compiled().empty()) absl::SleepFor(absl::Milliseconds(1));
  const absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder.Build(trial_, bundle, observer_);  // waits for it
  ASSERT_TRUE(build.ok()) << build.status();
  v1::Trial other = trial_;
  other.set_name("campaigns/8/trials/14");
  v1::TrialResult result;
  builder.AddAheadTimes(other, observer_, &result);
  EXPECT_TRUE(result.beside().empty()) << "of another campaign";
  builder.AddAheadTimes(trial_, observer_, &result);
  ASSERT_EQ(result.beside_size(), 1);
  const v1::BesideTime& ahead = result.beside(0);
  EXPECT_EQ(ahead.kind(), v1::BesideTime::BUILD_AHEAD);
  EXPECT_EQ(ahead.parent(), 3);
  EXPECT_EQ(ahead.change().to(), 64);
  EXPECT_GT(ahead.begin(), 0);
  EXPECT_GT(ahead.seconds(), 0);
  EXPECT_LE(ahead.begin() + ahead.seconds(), observer_.seconds());
  v1::TrialResult again;
  builder.AddAheadTimes(trial_, observer_, &again);
  EXPECT_TRUE(again.beside().empty()) << "once";
}

TEST_F(TrialPipelineTest, TimesNothingBeforeEverythingOfOursHasStarted) {
  std::vector<std::string> seen;
  gpu_.settle = [&] { seen.push_back("settled"); };
  gpu_.after = [&](const std::string& what) { seen.push_back(what); };
  const auto timed_unsettled = [&] {
    bool settled = false, any = false;
    for (const std::string& what : seen) {
      if (what == "settled") settled = any = true;
      if (what == "spare") settled = false;
      if (!settled && (absl::StartsWith(what, "compare") || what == "copy")) return true;
    }
    return !any;
  };
  Faster();
  Run();
  EXPECT_FALSE(timed_unsettled());
  EXPECT_NE(seen.front(), "settled") << "validation need not wait";
  const auto compared = std::find_if(seen.rbegin(), seen.rend(),
                                     [](const std::string& what) { return absl::StartsWith(what, "compare"); });
  EXPECT_THAT(std::vector<std::string>(compared.base(), seen.end()), Contains("spare")) << "for the next that is kept";
  seen.clear();
  Alone();
  Run();
  EXPECT_FALSE(timed_unsettled());
  EXPECT_THAT(seen, Contains("spare")) << "for the first that is kept";
}

TEST_F(TrialPipelineTest, TakesAFasterCandidateThroughEveryStepInOrder) {
  Faster();
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(kKept));
  EXPECT_EQ(result.pairs_size(), 12);
  EXPECT_EQ(result.confirming_pairs_size(), 36);
  EXPECT_NEAR(result.warm_us(), 180, 1);
  EXPECT_NEAR(result.parent_warm_us(), 200, 1);
  EXPECT_FALSE(result.sanitized());
  EXPECT_TRUE(result.sanitize_later());
  EXPECT_TRUE(result.profiled());
  EXPECT_EQ(result.errors_size(), 1) << "of the timed size";
  EXPECT_EQ(result.notes(), "");
  EXPECT_THAT(result.build(), HasSubstr("-DTILE=64"));
  EXPECT_EQ(result.cubin_hash().size(), 64u);
  ASSERT_EQ(artifacts_.size(), 3u);
  EXPECT_EQ(artifacts_[0].kind, v1::Blob::CUBIN);
  EXPECT_THAT(artifacts_[0].content, HasSubstr("-DTILE=64"));
  EXPECT_EQ(artifacts_[1].kind, v1::Blob::NCU_REPORT);
  EXPECT_EQ(artifacts_[2].kind, v1::Blob::LOG);
  EXPECT_THAT(observer_.reports,
              ElementsAre(testing::StartsWith("validate at hidden"), testing::StartsWith("validate at hidden"),
                          "validate at small (4 of 10)", "validate at main (5 of 10)",
                          "compare with the parent (6 of 10)", "compare again in a fresh process (7 of 10)",
                          "validate 20 times with fresh inputs (8 of 10)", "read counters (9 of 10)"));
}

TEST_F(TrialPipelineTest, ComparesAStepOfAnExpeditionOnceAndProfilesIt) {
  Faster();
  trial_.set_step(true);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kProfiled));
  EXPECT_EQ(result.confirming_pairs_size(), 0);
  EXPECT_TRUE(result.profiled());
  EXPECT_FALSE(result.sanitized());
}

TEST_F(TrialPipelineTest, TakesTheEndOfAnExpeditionThroughEveryCheck) {
  Faster();
  trial_.set_purpose(v1::TRIAL_PURPOSE_END);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_EQ(Log(gpu_.log), Log(kKept)) << "with counters: as a step that gained little it has none";
  EXPECT_EQ(result.confirming_pairs_size(), 36);
  EXPECT_TRUE(result.sanitize_later());
}

const Log kConfirmedBesideWitness = {"restart", "compare main 36 witness", "check timed main"};

// What the parent took as a candidate, relative to the witness's 210 us.
v1::SeatTime AsCandidate(double us) {
  v1::SeatTime time;
  time.set_log_time(std::log(us / 210));
  time.set_processes(2);
  return time;
}

TEST_F(TrialPipelineTest, TimesAWitnessBesideWhatIsAboutToBeKeptOnly) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  trial_.mutable_noise()->set_variance(4e-6);
  trial_.mutable_noise()->set_degrees(6);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmedBesideWitness + kMoreSizes +
                                         Validated(20) + kProfiled));
  EXPECT_EQ(result.pairs(0).witness_us(), 0);
  EXPECT_EQ(result.confirming_pairs(0).witness_us(), 210);
}

TEST_F(TrialPipelineTest, AsksFurtherProcessesWhileTheWitnessLeavesTheSeatInDoubt) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(197.2);  // now 1.4 % more: neither noise nor a bias of 2 %
  trial_.mutable_noise()->set_variance(9e-6);
  trial_.mutable_noise()->set_degrees(6);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << "the orchestrator judges it";
  EXPECT_EQ(result.confirming_pairs_size(), 3 * 36);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmedBesideWitness + kConfirmedBesideWitness +
                                         kConfirmedBesideWitness + kMoreSizes + Validated(20) + kProfiled));
}

// What it took in graphs can't be compared with what it takes call by call.
TEST_F(TrialPipelineTest, TimesTheParentBesideTheWitnessAloneWhereTheCandidateIsTimedCallByCall) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200, .single = true},
                    {.candidate_us = 180, .parent_us = 200, .single = true},
                    {.candidate_us = 190, .parent_us = 210}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  const Log alone = {"restart", "compare main 12 single", "check timed main"};
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmedBesideWitness + alone + alone +
                                         kMoreSizes + Validated(20) + kProfiled));
  EXPECT_NEAR(result.parent_alone().log_time(), std::log(190.0 / 210), 1e-6);
  EXPECT_EQ(result.parent_alone().processes(), 2);
  EXPECT_TRUE(result.parent_alone().single());
}

// More calls in a graph share the caches: times compare where there are as many.
TEST_F(TrialPipelineTest, TimesACandidateWithAsManyCallsInAGraphAsItsParentHad) {
  trial_.mutable_parent_as_candidate()->set_calls(2);
  gpu_.processes = {{.candidate_us = 100, .parent_us = 207, .calls = 4}};
  const v1::TrialResult of_start = Run();
  EXPECT_EQ(of_start.pairs(0).calls(), 2) << "the start has no witness";
  EXPECT_EQ(of_start.confirming_pairs(0).calls(), 2);
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(207);
  trial_.mutable_parent_as_candidate()->set_calls(2);
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.pairs(0).calls(), 2);
  EXPECT_EQ(result.confirming_pairs(0).calls(), 2);
  EXPECT_FALSE(result.has_parent_alone());
}

// A candidate that is much faster has more calls in a graph, so that this does not become too short to be timed.
TEST_F(TrialPipelineTest, TimesTheParentBesideTheWitnessAloneWhereGraphsHaveOtherNumbersOfCalls) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  trial_.mutable_parent_as_candidate()->set_calls(2);
  bundle_.clear_work_bytes();  // no floor
  bundle_.clear_work_flops();
  gpu_.processes = {{.candidate_us = 20, .parent_us = 207, .calls = 4},
                    {.candidate_us = 20, .parent_us = 207, .calls = 3},
                    {.candidate_us = 207, .parent_us = 210, .calls = 2}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_EQ(result.pairs(0).calls(), 4);
  EXPECT_EQ(result.confirming_pairs(0).calls(), 4) << "as many in every process";
  EXPECT_EQ(result.parent_alone().calls(), 4);
  EXPECT_FALSE(result.parent_alone().single());
  EXPECT_NEAR(result.parent_alone().log_time(), std::log(207.0 / 210), 1e-6);
  EXPECT_EQ(result.parent_again().calls(), 2) << "as it was as a candidate: it may have become slower";
  EXPECT_NEAR(result.parent_again().log_time(), std::log(207.0 / 210), 1e-6);
  trial_.mutable_parent_as_candidate()->set_calls(4);
  gpu_.processes = {{.candidate_us = 20, .parent_us = 207, .calls = 4}};
  EXPECT_FALSE(Run().has_parent_alone());
  trial_.mutable_parent_as_candidate()->set_calls(20);
  gpu_.processes = {{.candidate_us = 1, .parent_us = 207, .calls = 4}};
  EXPECT_EQ(Run().pairs(0).calls(), 20) << "a graph has no more";
}

TEST_F(TrialPipelineTest, TimesAShortGraphOnceWhereItCanNotHaveMoreCalls) {
  trial_.mutable_parent_as_candidate()->set_calls(1);
  gpu_.processes = {{.candidate_us = 30, .parent_us = 20, .most_calls = 1}};
  Run();
  EXPECT_EQ(std::count(gpu_.log.begin(), gpu_.log.end(), kCompared.front()), 1);
  gpu_.log.clear();
  gpu_.processes = {{.candidate_us = 30, .parent_us = 20}};
  Run();
  EXPECT_EQ(std::count(gpu_.log.begin(), gpu_.log.end(), kCompared.front()), 2);
}

TEST_F(TrialPipelineTest, DoesNotTimeTheParentAloneWhereItWasTimedCallByCallAsACandidate) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  trial_.mutable_parent_as_candidate()->set_single(true);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200, .single = true}};
  EXPECT_FALSE(Run().has_parent_alone());
}

// Who knows the inputs could have the answers to them in a candidate's code.
TEST_F(TrialPipelineTest, TimesInOneProcessWithInputsOfProblemPyThatNobodyHadBefore) {
  bundle_ = ProblemBundle();
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  const uint32_t of_seat = SeatData(gpu_.pools(), bundle_);
  trial_.mutable_parent_as_candidate()->set_data(of_seat);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult unknown = Run();  // they may take long to make
  ASSERT_EQ(unknown.confirming_pairs_size(), 72);
  const uint32_t known = unknown.pairs(0).data(), fresh = unknown.confirming_pairs(0).data();
  EXPECT_NE(known, of_seat);
  EXPECT_NE(fresh, known);
  EXPECT_NE(fresh, of_seat);
  EXPECT_EQ(unknown.confirming_pairs(71).data(), of_seat);
  EXPECT_FALSE(unknown.has_parent_alone()) << "its times compare";

  const v1::TrialResult quick = Run();
  ASSERT_EQ(quick.confirming_pairs_size(), 36);
  EXPECT_NE(quick.pairs(0).data(), known);
  EXPECT_NE(quick.pairs(0).data(), fresh);
  EXPECT_EQ(quick.confirming_pairs(0).data(), of_seat);
  EXPECT_FALSE(quick.has_parent_alone());

  *trial_.mutable_parent_as_candidate() = AsCandidate(197.2);  // now 1.4 % more: neither noise nor a bias of 2 %
  trial_.mutable_parent_as_candidate()->set_data(of_seat);
  trial_.mutable_noise()->set_variance(9e-6);
  trial_.mutable_noise()->set_degrees(6);
  const v1::TrialResult doubted = Run();
  EXPECT_GT(doubted.confirming_pairs_size(), 36);
  EXPECT_FALSE(doubted.has_parent_alone());
}

TEST_F(TrialPipelineTest, NeverUsesInputsAgainThatOneThatIsNotKeptHasSeen) {
  bundle_ = ProblemBundle();
  bundle_.mutable_variables(0)->add_values(128);
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  const auto of_seat = [&](const v1::Variant& parent, const v1::Variant& candidate) {
    *trial_.mutable_parent() = parent;
    *trial_.mutable_variant() = candidate;
    EXPECT_FALSE(Run().has_failure());
    return SeatData(gpu_.pools(), bundle_);
  };
  const uint32_t first = SeatData(gpu_.pools(), bundle_);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  EXPECT_EQ(of_seat(Tile(32), Tile(64)), first);
  gpu_.processes = {{.candidate_us = 220, .parent_us = 200}};
  EXPECT_EQ(of_seat(Tile(64), Tile(128)), first) << "the one that saw them is the parent, and this one does not";
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  EXPECT_EQ(of_seat(Tile(64), Tile(128)), first);
  trial_.set_step(true);
  EXPECT_EQ(of_seat(Tile(64), Tile(32)), first) << "a step of an expedition does not see them, whatever its parent";
  trial_.set_step(false);
  EXPECT_NE(of_seat(Tile(64), Tile(32)), first) << "the one that saw them is not: it was not kept";
}

// Its time relative to the anchor may be another with these inputs than with those of the trials before.
TEST_F(TrialPipelineTest, TimesAParentWithoutAWitnessAloneWithTheSameInputsOfProblemPy) {
  bundle_ = ProblemBundle();
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200},
                    {.candidate_us = 180, .parent_us = 200},
                    {.candidate_us = 180, .parent_us = 200},
                    {.candidate_us = 190, .parent_us = 250}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_FALSE(result.has_parent_alone());
  EXPECT_FALSE(result.has_parent_again());
  const v1::SeatTime& alone = result.parent_alone_beside_anchor();
  EXPECT_EQ(alone.processes(), 1);
  EXPECT_NEAR(alone.log_time(), std::log(190.0 / 10), 1e-6);
  EXPECT_EQ(alone.data(), SeatData(gpu_.pools(), bundle_));
  for (const v1::TrialPurpose purpose : {v1::TRIAL_PURPOSE_TOTAL, v1::TRIAL_PURPOSE_VERIFY}) {
    trial_.set_purpose(purpose);
    EXPECT_FALSE(Run().has_parent_alone_beside_anchor()) << "nothing is kept by it";
  }
}

// With other inputs it may take another time, and meanwhile it may have become slower.
TEST_F(TrialPipelineTest, TimesTheParentWithTheInputsOfBothTrials) {
  bundle_ = ProblemBundle();
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  trial_.mutable_parent_as_candidate()->set_data(NewData(gpu_.pools()));
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}, {.candidate_us = 180, .parent_us = 200},
                    {.candidate_us = 180, .parent_us = 200}, {.candidate_us = 199, .parent_us = 210},
                    {.candidate_us = 199, .parent_us = 210}, {.candidate_us = 203, .parent_us = 210}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_NEAR(result.parent_alone().log_time(), std::log(199.0 / 210), 1e-6);
  EXPECT_EQ(result.parent_alone().data(), SeatData(gpu_.pools(), bundle_));
  EXPECT_NEAR(result.parent_again().log_time(), std::log(203.0 / 210), 1e-6);
  EXPECT_EQ(result.parent_again().data(), trial_.parent_as_candidate().data());
  ScriptedGpu other;
  trial_.mutable_parent_as_candidate()->set_data(NewData(other.pools()));
  EXPECT_FALSE(Run().has_parent_again()) << "another device had those inputs";
}

TEST_F(TrialPipelineTest, RejectsACandidateWhoseParentCannotBeTimedWithoutIt) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(200);
  trial_.mutable_parent_as_candidate()->set_calls(2);
  gpu_.processes = {{.candidate_us = 18, .parent_us = 20, .calls = 4},
                    {.candidate_us = 18, .parent_us = 20, .calls = 4},
                    {.candidate_us = 19, .parent_us = 21, .single = true, .calls = 4}};
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_SEAT) << "without it, its calls leave something behind";
  gpu_.processes = {{.candidate_us = 18, .parent_us = 20, .calls = 4},
                    {.candidate_us = 18, .parent_us = 20, .calls = 4},
                    {.unsteady = true, .disturbance = "the clock fell"}};
  const v1::TrialResult unsteady = Run();
  EXPECT_EQ(unsteady.failure().check(), v1::CHECK_UNSTEADY) << "that is not the candidate's fault";
  EXPECT_THAT(unsteady.failure().message(), HasSubstr("the clock fell"));
}

TEST_F(TrialPipelineTest, AsksNoFurtherProcessOnceTheWitnessShowsABias) {
  *trial_.mutable_witness() = Tile(32);
  *trial_.mutable_parent_as_candidate() = AsCandidate(190);
  trial_.mutable_noise()->set_variance(4e-6);
  trial_.mutable_noise()->set_degrees(6);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  EXPECT_EQ(Run().confirming_pairs_size(), 36);
}

TEST_F(TrialPipelineTest, EndsAfterTheComparisonWhereTheCandidateIsSlower) {
  gpu_.processes = {{.candidate_us = 220, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared));
  EXPECT_EQ(result.confirming_pairs_size(), 0);
  EXPECT_FALSE(result.sanitized());
  EXPECT_FALSE(result.profiled());
  EXPECT_TRUE(result.evidence().partial());
  EXPECT_EQ(result.evidence().partial_reason(), "not profiled: only what is about to be kept is");
  EXPECT_EQ(result.evidence().launches(0).resources().registers(), 32);
}

TEST_F(TrialPipelineTest, EndsTheComparisonOfAnIterationWhenTwoPairsShowThatItIsSlower) {
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  gpu_.processes = {{.candidate_us = 300, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared));
  EXPECT_EQ(result.pairs_size(), 2);
  EXPECT_NEAR(result.warm_us(), 300, 1);
  gpu_.processes = {{.candidate_us = 215, .parent_us = 200}};
  EXPECT_EQ(Run().pairs_size(), 12) << "that is not clear with two";
}

TEST_F(TrialPipelineTest, MeasuresAllPairsWhereMoreThanTheVerdictDependsOnThem) {
  gpu_.processes = {{.candidate_us = 300, .parent_us = 200}};
  for (const v1::TrialPurpose purpose :
       {v1::TRIAL_PURPOSE_UNSPECIFIED, v1::TRIAL_PURPOSE_VERIFY, v1::TRIAL_PURPOSE_TOTAL, v1::TRIAL_PURPOSE_END}) {
    trial_.set_purpose(purpose);
    EXPECT_EQ(Run().pairs_size(), 12) << purpose;
  }
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  trial_.set_step(true);
  EXPECT_EQ(Run().pairs_size(), 12) << "a step of an expedition";
  trial_.set_step(false);
  trial_.mutable_goal()->set_size("main");
  EXPECT_EQ(Run().pairs_size(), 12) << "a leg";
}

TEST_F(TrialPipelineTest, EndsAfterTheComparisonWhereTheCandidateIsAsFast) {
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared));
}

TEST_F(TrialPipelineTest, MeasuresMorePairsWhereTheComparisonIsUnclear) {
  gpu_.processes = {{.candidate_us = 198.03, .parent_us = 200}};  // just under 1 %
  trial_.mutable_noise()->set_variance(1e-9);
  trial_.mutable_noise()->set_degrees(20);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_EQ(result.pairs_size(), 36);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + Log{"compare main 24", "check timed main"}));
}

TEST_F(TrialPipelineTest, KeepsNothingThatTheConfirmingProcessDoesNotFindFaster) {
  gpu_.processes = {{.candidate_us = 180}, {.candidate_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmed + kConfirmed + kConfirmed));
  EXPECT_EQ(result.confirming_pairs_size(), 3 * 36);
  EXPECT_NEAR(result.warm_us(), 200, 1) << "the times of the further processes count";
  EXPECT_FALSE(result.profiled());
}

TEST_F(TrialPipelineTest, FailsACandidateThatFailsInTheConfirmingProcess) {
  Faster();
  int compared = 0;
  gpu_.after = [&](const std::string& what) {
    if (what == "compare main 36" && ++compared == 1) gpu_.failures[what] = Failure(v1::CHECK_TIMEOUT);
  };
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_TIMEOUT);
  EXPECT_EQ(failure.stage(), v1::STAGE_MEASURE);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + Log{"restart", "compare main 36"}));
}

// Before the GPU.

TEST_F(TrialPipelineTest, RunsNothingOfAVariantThatTheConstraintsForbid) {
  *trial_.mutable_variant() = Tile(4096);
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_STATIC_CHECK);
  EXPECT_EQ(failure.check(), v1::CHECK_CONSTRAINT);
  EXPECT_THAT(failure.message(), HasSubstr("constraints forbid TILE=4096"));
  EXPECT_THAT(gpu_.compiled(), IsEmpty());
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, RunsNothingOfAVariantWithAValueThatTheSpaceDoesNotHave) {
  *trial_.mutable_variant() = Tile(33);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_CONSTRAINT);
  EXPECT_THAT(gpu_.compiled(), IsEmpty());
}

TEST_F(TrialPipelineTest, CompilesNothingThatTheGpuCannotLaunch) {
  *trial_.mutable_variant() = Tile(2048);
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_STATIC_CHECK);
  EXPECT_EQ(failure.check(), v1::CHECK_LAUNCH_LIMITS);
  EXPECT_THAT(gpu_.compiled(), IsEmpty());
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, CompilesNoEditThatLeavesAResultInAnotherBufferThanTheStart) {
  Edit(ExchangingBundle("3"));
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_STATIC_CHECK);
  EXPECT_THAT(failure.size(), testing::StartsWith("hidden"));
  EXPECT_THAT(failure.message(), AllOf(HasSubstr("the result of out is left in the buffer of spare at size hidden"),
                                       HasSubstr("where the start variant leaves it in that of out: copy it there")));
  EXPECT_THAT(gpu_.compiled(), IsEmpty());
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, KeepsAnEditThatExchangesAResultBack) {
  Edit(ExchangingBundle("4"));
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(kKept));
}

TEST_F(TrialPipelineTest, RejectsAnEditThatLeavesAResultElsewhereAtASizeThatIsMetOnlyBeforeAKeep) {
  Edit(ExchangingBundle("N > 1000 && N < 67108864 ? 1 : 2"));
  Faster();
  const v1::Failure failure = RunToFailure();
  EXPECT_THAT(failure.size(), testing::StartsWith("beside"));
  EXPECT_THAT(failure.message(), HasSubstr("the result of out is left in the buffer of spare"));
}

TEST_F(TrialPipelineTest, LetsTheStartLeaveAResultElsewhereAndItsVariantsThere) {
  bundle_ = ExchangingBundle("N % 2 + 1");
  Faster();
  EXPECT_FALSE(Run().has_failure());
  Alone();
  EXPECT_FALSE(Run().has_failure());
}

TEST_F(TrialPipelineTest, RejectsAVariantWhoseRepetitionsLeaveAResultElsewhere) {
  bundle_ = ExchangingBundle("TILE / 32");
  EXPECT_THAT(RunToFailure().message(), HasSubstr("where the start variant leaves it in that of spare"));
}

TEST_F(TrialPipelineTest, WantsResultsOfAProposedStartWhereTheContractHasThem) {
  bundle_ = ExchangingBundle("1");
  Alone();
  trial_.set_sanitize_start(true);
  const v1::Failure failure = RunToFailure();
  EXPECT_THAT(failure.message(), HasSubstr("where the contract wants it in that of out"));
  EXPECT_THAT(gpu_.log, IsEmpty());
  bundle_ = ExchangingBundle("2");
  EXPECT_FALSE(Run().has_failure());
}

TEST_F(TrialPipelineTest, TakesNothingAheadThatLeavesAResultElsewhere) {
  bundle_ = ExchangingBundle("TILE / 32");
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  TrialBuilder builder(gpu_);
  v1::ForeseenVariant next;
  *next.mutable_variant() = Tile(64);
  builder.Expect(trial_, bundle, {next});
  const absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_TRUE((*build)->failure.has_value());
}

TEST_F(TrialPipelineTest, RunsNothingThatDoesNotCompile) {
  *gpu_.builds["copy.cu"].mutable_failure() = Failure(v1::CHECK_COMPILE, "copy.cu(1): error");
  gpu_.builds["copy.cu"].set_log("copy.cu(1): error");
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_COMPILE);
  EXPECT_THAT(result.failure().size(), testing::StartsWith("hidden")) << "the first size that is built";
  EXPECT_EQ(result.cubin_hash(), "");
  EXPECT_THAT(gpu_.log, IsEmpty());
  ASSERT_EQ(artifacts_.size(), 1u);
  EXPECT_EQ(artifacts_[0].kind, v1::Blob::LOG);
}

TEST_F(TrialPipelineTest, RunsNothingOfACandidateWithItsParentsCodeAndLaunches) {
  gpu_.builds["copy.cu"].set_cubin("of every variant");
  bundle_.mutable_launches(0)->set_block(0, "32");
  const v1::TrialResult result = Run();
  EXPECT_TRUE(result.same_code());
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, IsEmpty());
  EXPECT_NE(result.cubin_hash(), "");
}

TEST_F(TrialPipelineTest, RunsWhatDiffersFromItsParentInItsLaunchesAlone) {
  gpu_.builds["copy.cu"].set_cubin("of every variant");
  EXPECT_FALSE(Run().same_code());
  EXPECT_THAT(gpu_.log, Contains("compare main 12"));
}

TEST_F(TrialPipelineTest, MeasuresAVerificationWhateverTheCode) {
  gpu_.builds["copy.cu"].set_cubin("of every variant");
  bundle_.mutable_launches(0)->set_block(0, "32");
  trial_.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  EXPECT_FALSE(Run().same_code());
  EXPECT_THAT(gpu_.log, Contains("compare main 12"));
}

TEST_F(TrialPipelineTest, FailsTheCandidateWhereTheReferenceDoesNotBuild) {
  *gpu_.builds["reference.cu"].mutable_failure() = Failure(v1::CHECK_COMPILE, "no such type");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_BUILD);
  EXPECT_EQ(failure.check(), v1::CHECK_COMPILE);
  EXPECT_THAT(failure.message(), HasSubstr("the reference of copy does not build: no such type"));
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForAParentThatNoLongerBuilds) {
  *gpu_.builds["-DTILE=32"].mutable_failure() = Failure(v1::CHECK_COMPILE);
  EXPECT_THAT(RunToFault(), HasSubstr("the variant TILE=32 was measured before and does not build here"));
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForACompilerThatIsBroken) {
  for (const char* part : {"-DTILE=64", "-DTILE=32", "reference.cu"}) {
    gpu_.build_faults = {{part, absl::FailedPreconditionError("no NVRTC")}};
    EXPECT_EQ(RunToFault(), "no NVRTC") << part;
  }
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, RefusesASizeThatTheBundleDoesNotHave) {
  trial_.set_size("huge");
  EXPECT_EQ(RunToFault(), "copy has no size huge");
}

TEST_F(TrialPipelineTest, BuildsNoParentThatItBuiltAsACandidateShortlyBefore) {
  TrialBuilder builder(gpu_);
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  v1::Trial start = trial_;
  start.clear_parent();
  *start.mutable_variant() = Tile(32);
  ASSERT_TRUE(builder.Build(start, bundle, observer_).ok());
  ASSERT_TRUE(builder.Build(trial_, bundle, observer_).ok());
  EXPECT_THAT(gpu_.compiled(), ElementsAre("copy.cu -DTILE=32", "reference.cu", "copy.cu -DTILE=64"));
}

TEST_F(TrialPipelineTest, StopsBetweenBuilds) {
  observer_.stop = true;
  EXPECT_TRUE(absl::IsCancelled(Build().status()));
  EXPECT_THAT(gpu_.compiled(), IsEmpty());
}

// Validation.

TEST_F(TrialPipelineTest, StopsAtTheFirstSizeThatFailsAndTimesNothing) {
  Faster();
  const Log all = Validated(2);
  for (const std::string size : {"hidden", "small", "main"}) {
    gpu_.log.clear();
    const std::string call = absl::StrCat("call ", size, " x2");
    gpu_.failures = {{call, Failure(v1::CHECK_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")}};
    const v1::Failure failure = RunToFailure();
    EXPECT_EQ(failure.stage(), v1::STAGE_VALIDATE);
    EXPECT_EQ(failure.check(), v1::CHECK_FAULT);
    EXPECT_THAT(failure.size(), testing::StartsWith(size));
    const auto end = std::find(all.begin(), all.end(), call);
    EXPECT_THAT(gpu_.log, ElementsAreArray(Log(all.begin(), end + 1)));
  }
}

TEST_F(TrialPipelineTest, TimesNothingWhoseOutputsAreWrong) {
  Faster();
  gpu_.errors["check main"] = WrongOutput();
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_TOLERANCE);
  EXPECT_EQ(result.failure().size(), "main");
  EXPECT_EQ(result.errors(0).wrong(), 10);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2)));
  EXPECT_TRUE(result.evidence().partial()) << "resources are known";
}

TEST_F(TrialPipelineTest, RejectsRepeatsThatGiveOtherBits) {
  gpu_.repeats["call small x2"] = Failure(v1::CHECK_DETERMINISM, "repeat 2 differs");
  gpu_.repeats["call small x2"].set_stage(v1::STAGE_VALIDATE);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_DETERMINISM);
  EXPECT_EQ(gpu_.log.back(), "check small");
}

TEST_F(TrialPipelineTest, CallsWrongOutputsWrongBeforeNondeterministic) {
  gpu_.repeats["call small x2"] = Failure(v1::CHECK_DETERMINISM);
  gpu_.errors["check small"] = WrongOutput();
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TOLERANCE);
}

TEST_F(TrialPipelineTest, FailsACandidateThatDoesNotLoad) {
  gpu_.failures["load"] = Failure(v1::CHECK_LAUNCH, "no such entry");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_LAUNCH);
  EXPECT_EQ(failure.stage(), v1::STAGE_VALIDATE);
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(TrialPipelineTest, FailsTheCandidateWhoseRunnerDied) {
  gpu_.failures["call small x2"] = Failure(v1::CHECK_FAULT, "the runner died: pawl-runner was killed by signal 11");
  EXPECT_THAT(RunToFailure().message(), HasSubstr("the runner died"));
}

TEST_F(TrialPipelineTest, FailsTheCandidateWhereTheReferenceDoesNotRun) {
  for (const char* what : {"load reference", "check small"}) {
    gpu_.failures = {{what, Failure(v1::CHECK_FAULT, "illegal address")}};
    const v1::Failure failure = RunToFailure();
    EXPECT_EQ(failure.stage(), v1::STAGE_VALIDATE) << what;
    EXPECT_EQ(failure.check(), v1::CHECK_FAULT) << what;
    EXPECT_THAT(failure.message(), HasSubstr("the reference of copy failed at size"));
  }
}

TEST_F(TrialPipelineTest, SaysWhereTheReferenceDoesNotFitIntoMemory) {
  gpu_.failures["check main"] = Failure(v1::CHECK_OUT_OF_MEMORY, "10 MiB are free");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_OUT_OF_MEMORY);
  EXPECT_EQ(failure.size(), "main");
}

TEST_F(TrialPipelineTest, LetsNoOutputPassThatWasNotCompared) {
  gpu_.outputs_compared = 0;
  EXPECT_THAT(RunToFault(), HasSubstr("the reference compared 0 outputs of 1"));
}

TEST_F(TrialPipelineTest, LeavesNoProcessWhoseContextGrew) {
  gpu_.local_bytes = 16 << 10;
  Run();
  EXPECT_EQ(gpu_.log.back(), "restart") << "room for stacks stays when the module has gone";
  gpu_.local_bytes = 512;
  gpu_.log.clear();
  Run();
  EXPECT_NE(gpu_.log.back(), "restart");
}

TEST_F(TrialPipelineTest, EndsWithTheReasonOnAGpuThatIsShared) {
  Alone();
  gpu_.processes = {{.unsteady = true, .disturbance = "stop other work on the GPU"}};
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_UNSTEADY);
  EXPECT_THAT(result.failure().message(), HasSubstr("the GPU was unsteady in 10 pairs: stop other work on the GPU"));
  EXPECT_THAT(result.disturbances(), ElementsAre("stop other work on the GPU"));
}

TEST_F(TrialPipelineTest, SendsTheReasonsWhyPairsWereDiscarded) {
  gpu_.processes = {{.candidate_us = 180, .unsteady = true, .disturbance = "throttle reasons changed"},
                    {.candidate_us = 180, .unsteady = true, .disturbance = "an uncorrected ECC error"}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << "unclear, which the orchestrator says";
  EXPECT_EQ(result.pairs_size(), 0);
  EXPECT_EQ(result.discarded(), 10);
  EXPECT_THAT(result.disturbances(), ElementsAre("an uncorrected ECC error"));
}

TEST_F(TrialPipelineTest, LeavesNoModuleLoaded) {
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(gpu_.loaded(), 0u);
  gpu_.failures["call small x2"] = Failure(v1::CHECK_FAULT);
  RunToFailure();
  EXPECT_EQ(gpu_.loaded(), 0u);
}

TEST_F(TrialPipelineTest, FindsHowLargeInputsMayBeWithTheStartVariantWhereTheBundleDoesNotSay) {
  bundle_.mutable_tensors(0)->clear_low();
  bundle_.mutable_tensors(0)->clear_high();
  // Right up to 100, as the start variant is: a candidate is held to no more.
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.magnitude() > 100; };
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.compiled(), Contains("copy.cu -DTILE=32"));
  const auto found = gpu_.input_limits().Find(BundleHash(bundle_));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at(v1::DISTRIBUTION_LARGE), 8);
  // Known from now on. Where the start is wrong with the same inputs after all, smaller ones decide.
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.magnitude() > 4; };
  EXPECT_FALSE(Run().has_failure());
  // A candidate that is wrong where the start is not, is: the first to be checked with a draw.
  std::set<std::string> checked;
  gpu_.wrong = [&](const v1::Plan&, const v1::InputDraw& draw) {
    return draw.magnitude() > 4 && checked.insert(draw.key()).second;
  };
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TOLERANCE);
}

TEST_F(TrialPipelineTest, LeavesOutInputsThatTheReferenceCannotBear) {
  bundle_.mutable_tensors(0)->clear_low();
  bundle_.mutable_tensors(0)->clear_high();
  gpu_.faults["check hidden LARGE"] = absl::InvalidArgumentError("reference.cu: an illegal address");
  EXPECT_FALSE(Run().has_failure());
  const auto found = gpu_.input_limits().Find(BundleHash(bundle_));
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->contains(v1::DISTRIBUTION_LARGE));
  EXPECT_TRUE(found->contains(v1::DISTRIBUTION_EQUAL));
}

TEST_F(TrialPipelineTest, ValidatesNoCandidateWithLessWhereTheStartCannotBeTried) {
  bundle_.mutable_tensors(0)->clear_low();
  bundle_.mutable_tensors(0)->clear_high();
  const auto status = [&] { return TryRun().status(); };
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.magnitude() == 0; };
  EXPECT_THAT(status().message(), HasSubstr("here it is wrong with its own"));
  gpu_.wrong = nullptr;
  gpu_.failures["call hidden LARGE"] = Failure(v1::CHECK_OUT_OF_MEMORY);  // only with other inputs than its own
  const absl::Status out_of_memory = status();
  EXPECT_TRUE(absl::IsUnavailable(out_of_memory)) << out_of_memory;
  EXPECT_FALSE(gpu_.input_limits().Find(BundleHash(bundle_)).has_value());
  gpu_.failures.clear();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_TRUE(gpu_.input_limits().Find(BundleHash(bundle_)).has_value());
}

// Timing.

TEST_F(TrialPipelineTest, BlamesNoCandidateForWhatAnotherLeftInTheProcess) {
  EXPECT_FALSE(Run().has_failure());
  for (const char* what : {"call hidden x2", "compare main 12"}) {
    for (const v1::Check check : {v1::CHECK_FAULT, v1::CHECK_TIMEOUT}) {
      gpu_.log.clear();
      *gpu_.once[what].mutable_failure() = Failure(check);
      EXPECT_FALSE(Run().has_failure()) << what;
      EXPECT_THAT(gpu_.log, Contains("restart").Times(1)) << what;
    }
  }
  gpu_.failures["call main x2"] = Failure(v1::CHECK_FAULT);
  gpu_.log.clear();
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_FAULT);
  EXPECT_THAT(gpu_.log, Contains("call main x2").Times(2)) << "it faults in a fresh process, too";
  gpu_.log.clear();
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_FAULT);
  EXPECT_THAT(gpu_.log, Contains("call main x2").Times(1)) << "nobody was in that process before";
}

TEST_F(TrialPipelineTest, TimesAgainInFreshProcessesWhereTheRunnerDiedOrRanOutOfMemory) {
  gpu_.processes = {{.candidate_us = 220}};
  for (const v1::Check check : {v1::CHECK_FAULT, v1::CHECK_OUT_OF_MEMORY}) {
    gpu_.log.clear();
    v1::RunnerReply& reply = gpu_.once["compare main 12"];
    *reply.mutable_failure() = Failure(check);
    reply.set_runner_died(check == v1::CHECK_FAULT);
    EXPECT_FALSE(Run().has_failure());
    EXPECT_THAT(gpu_.log,
                ElementsAreArray(Validated(2) + Log{"compare main 12", "restart", "restart reference"} + kCompared));
  }
}

TEST_F(TrialPipelineTest, WaitsLongerForProcessesThatConfirmWhatIsSlow) {
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(gpu_.deadlines["compare main 36"], absl::Seconds(150));
  gpu_.processes = {{.candidate_us = 400'000, .parent_us = 450'000}};
  EXPECT_FALSE(Run().has_failure());
  EXPECT_GT(gpu_.deadlines["compare main 36"], 36 * 15 * absl::Milliseconds(450) + absl::Seconds(20));
  gpu_.processes = {{.candidate_us = 40e6, .parent_us = 45e6}};
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(gpu_.deadlines["compare main 36"], absl::Minutes(15)) << "a hang ends, too";
}

TEST_F(TrialPipelineTest, FailsACandidateThatFailsWhileItIsTimed) {
  gpu_.failures["compare main 12"] = Failure(v1::CHECK_WALL_CLOCK);
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_MEASURE);
  EXPECT_EQ(failure.check(), v1::CHECK_WALL_CLOCK);
  EXPECT_EQ(failure.size(), "main");
  EXPECT_EQ(gpu_.log.back(), "compare main 12");
}

TEST_F(TrialPipelineTest, RejectsOutputsThatAreWrongOnlyWhenTimed) {
  Faster();
  gpu_.errors["check timed main"] = WrongOutput();
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_TIMED_OUTPUT);
  EXPECT_THAT(failure.message(), HasSubstr("right when validated, wrong when timed"));
  EXPECT_EQ(gpu_.log.back(), "check timed main");
}

TEST_F(TrialPipelineTest, RejectsOutputsThatAreWrongWithOtherInputsOnlyWhenTimed) {
  Faster();
  for (const v1::Distribution distribution : {v1::DISTRIBUTION_LARGE, v1::DISTRIBUTION_STRIPED}) {
    gpu_.wrong_when_timed = [&](const v1::InputDraw& draw) { return draw.distribution() == distribution; };
    const v1::Failure failure = RunToFailure();
    EXPECT_EQ(failure.check(), v1::CHECK_TIMED_OUTPUT);
    EXPECT_THAT(failure.message(),
                AllOf(HasSubstr("wrong when timed: with "), HasSubstr(DistributionText(distribution))));
  }
}

TEST_F(TrialPipelineTest, BelievesInputsOfFewValuesThatAreOffByLittleTwiceOnly) {
  Faster();
  gpu_.wrong_by = 2 * bundle_.tolerance().relative();
  gpu_.wrong_when_timed = [&](const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_EQUAL; };
  EXPECT_FALSE(Run().has_failure());
  gpu_.wrong_when_timed = [&](const v1::InputDraw& draw) { return HasFewValues(draw.distribution()); };
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TIMED_OUTPUT);
  gpu_.wrong_when_timed = [&](const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_EQUAL; };
  gpu_.wrong_by = 10 * bundle_.tolerance().relative();
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TIMED_OUTPUT);
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForTimedInputsThatTheStartOrTheReferenceCannotBear) {
  Faster();
  gpu_.wrong_when_timed = [&](const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_LARGE; };
  gpu_.wrong = [&](const v1::Plan& plan, const v1::InputDraw& draw) {
    return plan.size() == "main" && draw.distribution() == v1::DISTRIBUTION_LARGE;
  };
  EXPECT_FALSE(Run().has_failure());
  gpu_.wrong = nullptr;
  gpu_.overflows = [&](const v1::Plan& plan, const v1::InputDraw& draw) {
    return plan.size() == "main" && draw.distribution() == v1::DISTRIBUTION_LARGE;
  };
  EXPECT_FALSE(Run().has_failure());
}

TEST_F(TrialPipelineTest, FailsTheCandidateWhereTheReferenceDoesNotFitBesideTheTiming) {
  gpu_.failures["check timed main"] = Failure(v1::CHECK_OUT_OF_MEMORY);
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_MEASURE);
  EXPECT_EQ(failure.check(), v1::CHECK_OUT_OF_MEMORY);
  EXPECT_EQ(failure.size(), "main");
}

TEST_F(TrialPipelineTest, RejectsATimeBelowTheRooflineFloorBeforeAnythingElse) {
  gpu_.processes = {{.candidate_us = 50, .parent_us = 200}};
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_ROOFLINE);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmed));
}

TEST_F(TrialPipelineTest, HoldsTimesAgainstTheShareOfTheFloorThatTheCampaignAsksFor) {
  gpu_.processes = {{.candidate_us = 60, .parent_us = 200}};
  trial_.mutable_keep()->set_floor(0.5);
  EXPECT_FALSE(Run().has_failure());
}

TEST_F(TrialPipelineTest, BelievesNothingTenTimesAsFastBeforeItIsValidatedAgain) {
  gpu_.processes = {{.candidate_us = 200, .parent_us = 2500}};
  gpu_.errors["check hidden"] = v1::OutputError();
  int validated = 0;
  gpu_.after = [&](const std::string& what) {
    if (what == "call hidden x20" && ++validated == 1) gpu_.errors["check hidden"] = WrongOutput();
  };
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TOLERANCE);
  EXPECT_THAT(gpu_.log, Not(Contains("profile main")));
  EXPECT_EQ(gpu_.sanitizers, 0) << "it was ended";
}

TEST_F(TrialPipelineTest, ComparesInAFreshProcessWherePairsWereDiscarded) {
  gpu_.processes = {{.unsteady = true}, {.candidate_us = 220}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kRestarted + kCompared));
  EXPECT_EQ(result.pairs_size(), 12);
}

TEST_F(TrialPipelineTest, HoldsNoTimeAgainstTheFloorWhereEveryPairWasDiscarded) {
  gpu_.processes = {{.candidate_us = 1, .unsteady = true}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_EQ(result.pairs_size(), 0);
  EXPECT_FALSE(result.profiled());
}

// Before a keep.

TEST_F(TrialPipelineTest, RejectsWhatIsWrongBesideTheTimedSizeWhereTheStartIsRight) {
  Faster();
  int checked = 0;
  gpu_.after = [&](const std::string& what) {
    if (what == "call beside x2") gpu_.errors["check beside"] = ++checked == 1 ? WrongOutput() : v1::OutputError();
  };
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TOLERANCE);
  EXPECT_EQ(checked, 2) << "the start, too";
}

TEST_F(TrialPipelineTest, RejectsWhatIsWrongWhereOneDimensionIsSmallAndAnotherLarge) {
  Faster();
  for (v1::Size& size : *bundle_.mutable_sizes()) (*size.mutable_values())["M"] = 100;
  (*bundle_.mutable_hidden())["M"].set_low(1);
  (*bundle_.mutable_hidden())["M"].set_high(20);
  for (const bool few_n : {true, false}) {
    int wrong = 0;
    gpu_.wrong = [&](const v1::Plan& plan, const v1::InputDraw&) {
      const int n = plan.sizes().at("N"), m = plan.sizes().at("M");
      return (few_n ? n <= 8 && m > 20 : n > 1000 && m <= 20) && ++wrong == 1;
    };
    const v1::Failure failure = RunToFailure();
    EXPECT_EQ(failure.check(), v1::CHECK_TOLERANCE) << failure.message();
    EXPECT_EQ(wrong, 2) << "the start is right there";
  }
}

TEST_F(TrialPipelineTest, AsksNothingOfASizeAtWhichTheStartIsWrong) {
  Faster();
  gpu_.errors["check beside"] = WrongOutput();
  EXPECT_FALSE(Run().has_failure());
}

TEST_F(TrialPipelineTest, TriesScaledInputsOfProblemPyAtTheTimedSizeAndBesideIt) {
  bundle_ = ProblemBundle();
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.other_inputs, Not(Contains("call main SCALED"))) << "it is not faster";
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.other_inputs,
              testing::IsSupersetOf({"call hidden SCALED", "call main SCALED", "call beside SCALED"}));
  *gpu_.once["call main SCALED"].mutable_failure() = Failure(v1::CHECK_FAULT);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_FAULT);
  gpu_.failures["call main SCALED"] = Failure(v1::CHECK_FAULT);
  EXPECT_FALSE(Run().has_failure()) << "the start faults there, too";
  gpu_.failures.clear();
  gpu_.errors["check beside SCALED"] = WrongOutput();
  EXPECT_FALSE(Run().has_failure()) << "the start is wrong there, too";
}

TEST_F(TrialPipelineTest, EndsTheSanitizerWithACandidateThatFailsTheSecondValidation) {
  Faster();
  Verify();
  gpu_.sanitizing.failure = Failure(v1::CHECK_RACECHECK);
  gpu_.failures["call main x20"] = Failure(v1::CHECK_DETERMINISM);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_DETERMINISM) << "what validation finds comes first";
  EXPECT_EQ(gpu_.log.back(), "call main x20");
  EXPECT_EQ(gpu_.sanitizers, 0);
}

TEST_F(TrialPipelineTest, ProfilesNothingThatTheSanitizerRejects) {
  Faster();
  Verify();
  gpu_.sanitizing.failure = Failure(v1::CHECK_RACECHECK, "compute-sanitizer racecheck: hazard");
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_RACECHECK);
  EXPECT_FALSE(result.sanitized());
  EXPECT_THAT(gpu_.log, Contains(kSanitized[0]));
  EXPECT_EQ(gpu_.log.back(), "check main");
}

TEST_F(TrialPipelineTest, SaysThatTheSanitizerIsMissing) {
  Faster();
  gpu_.sanitizer_installed = false;
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.sanitized() || result.sanitize_later());
  EXPECT_TRUE(result.profiled());
  EXPECT_EQ(result.notes(), "compute-sanitizer is not installed here");
}

TEST_F(TrialPipelineTest, LeavesTheSanitizerOutWhereTheCampaignAsks) {
  Faster();
  trial_.mutable_keep()->set_skip_sanitizer(true);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.sanitized() || result.sanitize_later());
  EXPECT_EQ(result.notes(), "compute-sanitizer was left out, as the campaign asks");
  EXPECT_THAT(gpu_.log, Not(Contains(kSanitized[0])));
}

TEST_F(TrialPipelineTest, RejectsAStartWithoutInputsAndBlamesNoMachine) {
  Alone();
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  gpu_.faults["load"] = absl::InvalidArgumentError("problem.py: inputs() raised ValueError: no data");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_VALIDATE);
  EXPECT_EQ(failure.message(), "problem.py: inputs() raised ValueError: no data");
}

TEST_F(TrialPipelineTest, LeavesNoRunnerBehindInWhichACandidateFailed) {
  gpu_.failures["call main x2"] = Failure(v1::CHECK_GUARD_BAND, "the kernel wrote outside a tensor");
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_GUARD_BAND);
  EXPECT_TRUE(replaced_runner_) << "it may have changed Pawl's own code there";
  gpu_.failures.clear();
  Run();
  EXPECT_FALSE(replaced_runner_) << "nothing was wrong";
}

// Over kept variants.

TEST_F(TrialPipelineTest, RunsTheSanitizerOverSeveralKeptVariantsAtOnce) {
  Sanitize({64, 32});
  const v1::TrialResult result = Run();
  EXPECT_THAT(gpu_.log, ElementsAre("sanitize hidden hidden small hidden hidden small"));
  ASSERT_EQ(result.sanitized_variants_size(), 2);
  for (const v1::SanitizedVariant& found : result.sanitized_variants()) EXPECT_FALSE(found.has_failure());
  EXPECT_EQ(result.sanitized_variants(0).iteration(), 1);
  EXPECT_EQ(result.sanitized_variants(1).iteration(), 2);
  EXPECT_EQ(result.stages(result.stages_size() - 1).stage(), v1::STAGE_VALIDATE);
}

TEST_F(TrialPipelineTest, FindsOutWhichKeptVariantTheSanitizerRejects) {
  Sanitize({64, 32});
  gpu_.sanitize = [](const std::vector<const BuiltSize*>& sizes) -> absl::StatusOr<Sanitizing> {
    const bool has_32 = std::any_of(sizes.begin(), sizes.end(), [](const BuiltSize* size) {
      return size->cubin != nullptr && absl::StrContains(*size->cubin, "-DTILE=32");
    });
    return has_32 ? Sanitizing{.failure = Failure(v1::CHECK_RACECHECK, "hazard")} : Sanitizing();
  };
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << "what it finds is of a variant, not of the trial";
  ASSERT_EQ(result.sanitized_variants_size(), 2);
  EXPECT_FALSE(result.sanitized_variants(0).has_failure());
  EXPECT_EQ(result.sanitized_variants(1).failure().check(), v1::CHECK_RACECHECK);
}

TEST_F(TrialPipelineTest, RejectsNoKeptVariantForWhatTakesTooLongTogetherOnly) {
  Sanitize({64, 32});
  gpu_.sanitize = [](const std::vector<const BuiltSize*>& sizes) -> absl::StatusOr<Sanitizing> {
    if (sizes.size() == 3) return Sanitizing();
    return Sanitizing{.failure = Failure(v1::CHECK_TIMEOUT, "60 s")};
  };
  const v1::TrialResult result = Run();
  ASSERT_EQ(result.sanitized_variants_size(), 2);
  for (const v1::SanitizedVariant& found : result.sanitized_variants()) EXPECT_FALSE(found.has_failure());
}

TEST_F(TrialPipelineTest, RunsTheSanitizerOverFewerVariantsAtOnceWhereTheirTensorsAreLarge) {
  (*bundle_.mutable_sizes(0)->mutable_values())["N"] = 1 << 26;
  Sanitize({64, 32});
  EXPECT_EQ(Run().sanitized_variants_size(), 2);
  EXPECT_THAT(gpu_.log, ElementsAre("sanitize hidden hidden small", "sanitize hidden hidden small"));
}

TEST_F(TrialPipelineTest, LeavesTheLargerHiddenSizesToTheEnd) {
  (*bundle_.mutable_hidden())["N"].set_low(1);
  (*bundle_.mutable_hidden())["N"].set_high(5000);
  std::vector<std::vector<int64_t>> sanitized;  // the sizes of each run
  gpu_.sanitize = [&](const std::vector<const BuiltSize*>& sizes) -> absl::StatusOr<Sanitizing> {
    sanitized.emplace_back();
    for (const BuiltSize* size : sizes) sanitized.back().push_back(size->plan.sizes().at("N"));
    return Sanitizing{.called = sizes.size()};
  };
  Sanitize({64});
  Run();
  ASSERT_EQ(sanitized.size(), 1u);
  ASSERT_EQ(sanitized[0].size(), 3u);
  EXPECT_EQ(sanitized[0].back(), 1000) << "the smallest of the ladder";
  EXPECT_THAT(sanitized[0], Each(Lt(5000))) << "the largest hidden size takes the tools longest";

  sanitized.clear();
  trial_.clear_unsanitized();
  *trial_.mutable_parent() = Tile(32);
  Total();
  EXPECT_FALSE(Run().has_failure());
  ASSERT_EQ(sanitized.size(), 3u);
  EXPECT_EQ(sanitized[0].back(), 5000) << "racecheck and initcheck, as far as they come";
  EXPECT_TRUE(std::is_sorted(sanitized[0].begin(), sanitized[0].end()));
  EXPECT_EQ(sanitized[1].size(), 4u) << "half of them";
  EXPECT_EQ(sanitized[1].back(), 5000) << "memcheck";
  EXPECT_THAT(sanitized[2], ElementsAre(1 << 26));
}

TEST_F(TrialPipelineTest, FailsTheBestThatReadsOutOfBoundsAtLargerHiddenSizesOnly) {
  (*bundle_.mutable_hidden())["N"].set_low(1);
  (*bundle_.mutable_hidden())["N"].set_high(5000);
  Total();
  gpu_.failures["memcheck hidden hidden hidden hidden"] =
      Failure(v1::CHECK_MEMCHECK, "Invalid __global__ read of size 4 bytes");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_MEMCHECK);
  EXPECT_EQ(failure.size(), "hidden sizes");
}

TEST_F(TrialPipelineTest, BlamesNoKeptVariantForATroubleOfTheSanitizer) {
  Sanitize({64});
  gpu_.faults["sanitize hidden hidden small"] = absl::InternalError("no compute-sanitizer for this driver");
  EXPECT_EQ(RunToFault(), "no compute-sanitizer for this driver");
}

TEST_F(TrialPipelineTest, RejectsTheOneKeptVariantThatTheSanitizerCanNotRunOver) {
  Sanitize({64, 32});
  gpu_.sanitize = [](const std::vector<const BuiltSize*>& sizes) -> absl::StatusOr<Sanitizing> {
    const bool has_32 = std::any_of(sizes.begin(), sizes.end(), [](const BuiltSize* size) {
      return size->cubin != nullptr && absl::StrContains(*size->cubin, "-DTILE=32");
    });
    if (has_32) return absl::InternalError("compute-sanitizer died of signal 11");
    return Sanitizing();
  };
  const v1::TrialResult result = Run();
  ASSERT_EQ(result.sanitized_variants_size(), 2);
  EXPECT_FALSE(result.sanitized_variants(0).has_failure());
  const v1::Failure& failure = result.sanitized_variants(1).failure();
  EXPECT_EQ(failure.check(), v1::CHECK_TIMEOUT) << "nothing that others could inherit";
  EXPECT_EQ(failure.message(), "compute-sanitizer could not run over it: compute-sanitizer died of signal 11");
}

TEST_F(TrialPipelineTest, RejectsNoKeptVariantsOnAMachineThatFailsMeanwhile) {
  Sanitize({64, 32, 16});
  int runs = 0;
  gpu_.sanitize = [&](const std::vector<const BuiltSize*>&) -> absl::StatusOr<Sanitizing> {
    ++runs;
    if (runs == 1) return Sanitizing{.failure = Failure(v1::CHECK_TIMEOUT, "60 s")};
    if (runs == 2) return Sanitizing();
    return absl::ResourceExhaustedError("can't write the job: is the disk full?");
  };
  EXPECT_THAT(RunToFault(), HasSubstr("is the disk full?"));
}

TEST_F(TrialPipelineTest, ClaimsNothingOfKeptVariantsWithoutASanitizer) {
  Sanitize({64});
  gpu_.sanitizer_installed = false;
  gpu_.sanitize = [](const std::vector<const BuiltSize*>&) -> absl::StatusOr<Sanitizing> {
    return absl::UnavailableError("compute-sanitizer was not found");
  };
  EXPECT_EQ(RunToFault(), "compute-sanitizer was not found");
}

TEST_F(TrialPipelineTest, SanitizesWhatItBuiltForTheTrialThatKeptIt) {
  TrialBuilder builder(gpu_);
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  const absl::StatusOr<std::unique_ptr<TrialBuild>> tried = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(tried.ok()) << tried.status();
  const BuildCounts before = gpu_.builder().TakeCounts();
  Sanitize({64});
  const absl::StatusOr<std::unique_ptr<TrialBuild>> again = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(again.ok()) << again.status();
  const BuildCounts after = gpu_.builder().TakeCounts();
  EXPECT_EQ(after.cached + after.compiled, 0) << before.compiled << " before";
  ASSERT_EQ((*again)->unsanitized.size(), 1u);
  EXPECT_EQ((*again)->unsanitized[0].size(), 3u);
}

TEST_F(TrialPipelineTest, KeepsACandidateWithoutCountersAndSaysWhy) {
  Faster();
  gpu_.no_counters = "counters are forbidden";
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_FALSE(result.profiled());
  EXPECT_TRUE(result.evidence().partial());
  EXPECT_EQ(result.notes(), "no counters: counters are forbidden");
  ASSERT_EQ(artifacts_.size(), 2u) << "no report of ncu";
  EXPECT_EQ(artifacts_[0].kind, v1::Blob::CUBIN);
}

TEST_F(TrialPipelineTest, GivesAVerificationTheSameSteps) {
  Faster();
  trial_.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(kVerified)) << "and the sanitizer's at once";
}

TEST_F(TrialPipelineTest, BuildsAndRunsAHandOffAtTheEnd) {
  trial_.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  trial_.add_hand_off()->set_path("check_program.sh");
  v1::HandOffCheck& program = gpu_.hand_off.emplace_back();
  program.set_form("program");
  program.set_text("it exited with code 1: WRONG");
  gpu_.has_spare = true;
  gpu_.after = [&](const std::string& what) {
    if (what == "hand-off of 1") EXPECT_FALSE(gpu_.has_spare) << "it has the memory for itself";
  };
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << "a form that fails is no fault of the candidate";
  EXPECT_EQ(gpu_.log.back(), "hand-off of 1");
  ASSERT_EQ(result.hand_off_size(), 1);
  EXPECT_EQ(result.hand_off(0).text(), "it exited with code 1: WRONG");
  EXPECT_THAT(observer_.reports, Contains(HasSubstr("build and run the hand-off")));
}

TEST_F(TrialPipelineTest, HandsOffNothingThatFailed) {
  trial_.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  trial_.add_hand_off()->set_path("check_program.sh");
  *gpu_.builds["-DTILE=64"].mutable_failure() = Failure(v1::CHECK_COMPILE);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_COMPILE);
  EXPECT_THAT(gpu_.log, Not(Contains("hand-off of 1")));
}

// Alone.

TEST_F(TrialPipelineTest, TakesAVariantWithoutAParentThroughEveryStepInOrder) {
  Alone();
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(kAlone));
  EXPECT_EQ(result.pairs_size(), 12);
  EXPECT_EQ(result.warm_us(), 200);
  EXPECT_EQ(result.cold_us(), 300);
  EXPECT_EQ(result.copy_gb_s(), 4000);
  EXPECT_EQ(result.baselines_size(), 2);
  EXPECT_TRUE(result.sanitize_later());
  EXPECT_TRUE(result.profiled());
}

TEST_F(TrialPipelineTest, SanitizesAStartThatSomebodyProposedAtOnce) {
  Alone();
  trial_.set_sanitize_start(true);
  gpu_.sanitizing.seconds = 0.25;
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_TRUE(result.sanitized());
  EXPECT_FALSE(result.sanitize_later());
  EXPECT_THAT(gpu_.log, Contains(kSanitized[0]));
}

TEST_F(TrialPipelineTest, RejectsAToleranceThatAcceptsWrongOutputs) {
  Alone();
  gpu_.lenient = {"zeros"};
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_LENIENT);
  EXPECT_THAT(gpu_.log,
              ElementsAre("call hidden x20", "check hidden self-test", "call hidden x1", "check hidden self-test"))
      << "twice";
}

TEST_F(TrialPipelineTest, TimesAVariantAgainInAFreshProcessWhereTheGpuWasUnsteady) {
  Alone();
  gpu_.processes = {{.unsteady = true}, {}};
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.log, Contains("restart").Times(1));
}

TEST_F(TrialPipelineTest, RejectsAVariantAloneOnAGpuThatStaysUnsteady) {
  Alone();
  gpu_.processes = {{.unsteady = true}};
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.stage(), v1::STAGE_MEASURE);
  EXPECT_EQ(failure.check(), v1::CHECK_UNSTEADY);
  EXPECT_EQ(failure.size(), "main");
  EXPECT_THAT(failure.message(), HasSubstr("the GPU was unsteady in 10 pairs"));
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(20, true) + kReferenceTried + kCompared + kRestarted + kCompared));
}

TEST_F(TrialPipelineTest, HoldsAVariantAloneAgainstTheRooflineFloor) {
  Alone();
  gpu_.processes = {{.candidate_us = 50, .parent_us = 50}};
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_ROOFLINE);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(20, true) + kReferenceTried + kCompared));
}

TEST_F(TrialPipelineTest, FailsAVariantAloneThatFailsWhileItIsTimed) {
  Alone();
  gpu_.failures["compare main 12"] = Failure(v1::CHECK_TIMEOUT);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TIMEOUT);
  EXPECT_EQ(gpu_.log.back(), "compare main 12");
}

TEST_F(TrialPipelineTest, SaysWhyThereIsNoBaseline) {
  Alone();
  gpu_.faults["baseline"] = absl::UnavailableError("the baseline command exited with 1");
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_EQ(result.baseline_error(), "the baseline command exited with 1");
  EXPECT_EQ(result.baselines_size(), 0);
}

TEST_F(TrialPipelineTest, WarnsOfABaselineThatIsFasterThanTheGpu) {
  Alone();
  EXPECT_EQ(Run().notes(), "");
  gpu_.baseline_us = 50;
  EXPECT_THAT(Run().notes(), HasSubstr("the baseline takes 50.000 us at main, less than the roofline floor of "));
}

TEST_F(TrialPipelineTest, WarnsOfAReferenceThatIgnoresAnInput) {
  Alone();
  gpu_.blind_reference = true;
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(result.notes(), HasSubstr("the reference's outputs do not depend on the input in"));
  EXPECT_THAT(gpu_.log, Contains("reference check main")) << "at a small size an input may not matter";
}

TEST_F(TrialPipelineTest, GoesOnWhereTheReferenceCannotBeTried) {
  Alone();
  gpu_.failures["reference call small x1"] = Failure(v1::CHECK_INPUT_CHANGED);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_EQ(result.notes(), "");
}

TEST_F(TrialPipelineTest, TimesNoBaselineThatTheBundleDoesNotHave) {
  Alone();
  bundle_.clear_baseline_command();
  EXPECT_EQ(Run().baseline_error(), "");
  EXPECT_EQ(gpu_.log.back(), "copy");
}

TEST_F(TrialPipelineTest, GoesOnWithoutTheBandwidthOfACopyThatFails) {
  Alone();
  gpu_.failures["copy"] = Failure(v1::CHECK_OUT_OF_MEMORY);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_EQ(result.copy_gb_s(), 0);
  EXPECT_EQ(result.baselines_size(), 2);
}

// The best variant beside the start.

TEST_F(TrialPipelineTest, TimesTheBestBesideTheStartAtEverySize) {
  Total();
  Faster();
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kSanitizedLarge + kCompared + kConfirmed +
                                         Log{"compare small 3", "check timed small", "compare main 3",
                                             "check timed main", "baseline beside main"}))
      << "it was sanitized at small sizes and profiled when it was kept";
  ASSERT_EQ(result.sizes_size(), 2);
  EXPECT_EQ(result.sizes(0).size(), "small");
  EXPECT_EQ(result.sizes(0).start_us(), 200);
  EXPECT_EQ(result.sizes(0).best_us(), 180);
  EXPECT_EQ(result.sizes(0).start_bytes(), 8000);
  EXPECT_EQ(result.beside_baseline().log_ratios_size(), 24);
  EXPECT_EQ(result.beside_baseline().baseline_us(), 150);
}

TEST_F(TrialPipelineTest, OnlyComparesTheBestWithTheStartWhileTheCampaignGoesOn) {
  Total();
  trial_.set_interim(true);
  Faster();
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kConfirmed));
  EXPECT_TRUE(result.sizes().empty());
  EXPECT_FALSE(result.has_beside_baseline());
}

TEST_F(TrialPipelineTest, SaysWhyTheBestWasNotTimedBesideTheBaseline) {
  Total();
  gpu_.faults["baseline beside main"] = absl::UnavailableError("the baseline command exited with 1");
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << "it decides nothing";
  EXPECT_EQ(result.beside_baseline().error(), "the baseline command exited with 1");
  EXPECT_EQ(result.beside_baseline().log_ratios_size(), 0);
}

TEST_F(TrialPipelineTest, TimesNothingBesideABaselineThatIsNotComparedWithIt) {
  Total();
  bundle_.set_timing(v1::TIMING_MODE_COLD);
  EXPECT_FALSE(Run().has_beside_baseline());
  bundle_.set_timing(v1::TIMING_MODE_WARM);
  bundle_.clear_baseline_command();
  EXPECT_FALSE(Run().has_beside_baseline());
}

TEST_F(TrialPipelineTest, TimesTheLadderAlsoWhereTheBestIsSlowerThanTheStart) {
  Total();
  gpu_.processes = {{.candidate_us = 220}};
  EXPECT_EQ(Run().sizes_size(), 2);
}

TEST_F(TrialPipelineTest, SanitizesTheBestAtTheEndWhereTheCampaignLeftThatOut) {
  Total();
  trial_.mutable_keep()->set_skip_sanitizer(true);
  const v1::TrialResult result = Run();
  EXPECT_TRUE(result.sanitized());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kSanitized + kSanitizedLarge + kCompared +
                                         Log{"compare small 3", "check timed small", "compare main 3",
                                             "check timed main", "baseline beside main"}));
}

TEST_F(TrialPipelineTest, TimesNoLadderOfABestThatTheSanitizerRejects) {
  Total();
  trial_.mutable_keep()->set_skip_sanitizer(true);
  gpu_.sanitizing.failure = Failure(v1::CHECK_MEMCHECK);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_MEMCHECK);
  EXPECT_EQ(gpu_.log.back(), kSanitized[0]);
}

TEST_F(TrialPipelineTest, FailsTheBestThatReadsOutOfBoundsAtTheTimedSizeOnly) {
  Total();
  gpu_.failures["memcheck main"] = Failure(v1::CHECK_MEMCHECK, "Invalid __global__ read of size 4 bytes");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_MEMCHECK);
  EXPECT_EQ(failure.size(), "main");
  EXPECT_EQ(gpu_.log.back(), "memcheck main");
}

TEST_F(TrialPipelineTest, SparesABestNoSanitizerWhereTheGpuIsTooUnsteadyToMeasureIt) {
  Total();
  gpu_.failures["compare main 12"] = Failure(v1::CHECK_UNSTEADY);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_UNSTEADY);
  EXPECT_THAT(gpu_.log, Contains("memcheck main"));
}

TEST_F(TrialPipelineTest, FailsTheBestWithARaceAtALargerSize) {
  Total();
  AddSizeBetween();
  EXPECT_THAT(Run().notes(), HasSubstr("racecheck and initcheck ran up to between: they are too slow"));
  gpu_.failures["racecheck and initcheck between"] = Failure(v1::CHECK_RACECHECK);
  EXPECT_EQ(RunToFailure().size(), "between") << "main has too much memory for these tools";
  EXPECT_EQ(gpu_.sanitizers, 0);
}

TEST_F(TrialPipelineTest, SaysHowFarUpTheLadderTheSlowToolsCame) {
  Total();
  AddSizeBetween();
  gpu_.sanitizer_calls = 0;
  EXPECT_THAT(Run().notes(), HasSubstr("racecheck and initcheck ran up to small: they are too slow"));
}

TEST_F(TrialPipelineTest, TriesAloneWhatWasShortOfTimeBesideTheSanitizer) {
  Faster();
  Verify();
  *gpu_.once["call main x20"].mutable_failure() = Failure(v1::CHECK_TIMEOUT);
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_TRUE(result.sanitized());
  EXPECT_THAT(gpu_.log, Contains("call main x20").Times(2));
  EXPECT_THAT(gpu_.log, Contains(kSanitized[0]).Times(2));
}

TEST_F(TrialPipelineTest, FailsWhatIsShortOfTimeAloneToo) {
  Faster();
  Verify();
  gpu_.failures["call main x20"] = Failure(v1::CHECK_TIMEOUT);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TIMEOUT);
  EXPECT_THAT(gpu_.log, Contains("call main x20").Times(2));
  EXPECT_EQ(gpu_.sanitizers, 0);
}

TEST_F(TrialPipelineTest, TakesBackNoFailureOfAnEarlierStep) {
  Faster();
  gpu_.failures["compare main 36"] = Failure(v1::CHECK_TIMEOUT);
  EXPECT_EQ(RunToFailure().check(), v1::CHECK_TIMEOUT);
  *gpu_.builds["copy.cu"].mutable_failure() = Failure(v1::CHECK_TIMEOUT, "the build took too long");
  Alone();
  EXPECT_EQ(RunToFailure().message(), "the build took too long");
}

TEST_F(TrialPipelineTest, TakesNothingThatWasBuiltAheadForOtherTimedSizes) {
  AddSizeBetween();
  const auto bundle = std::make_shared<const v1::Bundle>(bundle_);
  TrialBuilder builder(gpu_);
  v1::ForeseenVariant next;
  *next.mutable_variant() = Tile(64);
  builder.Expect(trial_, bundle, {next});
  while (gpu_.compiled().empty()) absl::SleepFor(absl::Milliseconds(1));
  trial_.set_size("between");
  const absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder.Build(trial_, bundle, observer_);
  ASSERT_TRUE(build.ok()) << build.status();
  EXPECT_FALSE((*build)->built_ahead);
  EXPECT_NE((*build)->candidate.Find("between"), nullptr);
}

TEST_F(TrialPipelineTest, MeetsSizesThatAreNotTimedOnlyWhenItIsAboutToBeKept) {
  AddSizeBetween();
  gpu_.processes = {{.candidate_us = 220, .parent_us = 200}};
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared));
  gpu_.log.clear();
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(gpu_.log, Contains("call between x20"));
  gpu_.log.clear();
  gpu_.errors["check between"] = WrongOutput();
  EXPECT_EQ(RunToFailure().size(), "between");
  gpu_.log.clear();
  Alone();
  gpu_.errors["check between self-test"] = WrongOutput();
  EXPECT_EQ(RunToFailure().size(), "between") << "the start is right at every size, or there is no campaign";
}

TEST_F(TrialPipelineTest, IsTimedAfterHalfOfTheHiddenSizesWhereEachIsACompilation) {
  (*bundle_.mutable_hidden())["N"].set_high(900'000);  // no two are the same
  const auto hidden = [this] { return std::count(gpu_.log.begin(), gpu_.log.end(), "call hidden x2"); };
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(hidden(), 8);
  gpu_.log.clear();
  bundle_.mutable_source()->set_text("int n = SIZE_N;\n");
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(hidden(), 4);
  gpu_.log.clear();
  Faster();
  EXPECT_FALSE(Run().has_failure());
  EXPECT_EQ(std::count(gpu_.log.begin(), gpu_.log.end(), "call hidden x20"), 8) << "about to be kept";
}

TEST_F(TrialPipelineTest, FailsAVariantThatDoesNotBuildAtASizeThatIsNotTimed) {
  AddSizeBetween();
  Faster();
  bundle_.mutable_source()->set_text("int n = SIZE_N;\n");
  *gpu_.builds["SIZE_N=65536"].mutable_failure() = Failure(v1::CHECK_COMPILE, "too large");
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_COMPILE);
  EXPECT_EQ(failure.size(), "between");
}

TEST_F(TrialPipelineTest, SaysWhichToolDidNotEndAtALargeSize) {
  Total();
  gpu_.faults["memcheck main"] = absl::DeadlineExceededError("compute-sanitizer memcheck did not end in 2m");
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(result.notes(), HasSubstr("compute-sanitizer memcheck did not end in 2m at main"));
}

TEST_F(TrialPipelineTest, LeavesOutASizeThatCannotBeTimed) {
  Total();
  gpu_.failures["compare small 3"] = Failure(v1::CHECK_TIMEOUT, "far too slow");
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure());
  EXPECT_THAT(result.notes(), HasSubstr("not timed at small: far too slow"));
  ASSERT_EQ(result.sizes_size(), 1);
  EXPECT_EQ(result.sizes(0).size(), "main");
}

TEST_F(TrialPipelineTest, FailsTheBestWhoseOutputsAreWrongAtAnotherSize) {
  Total();
  gpu_.errors["check timed small"] = WrongOutput();
  const v1::Failure failure = RunToFailure();
  EXPECT_EQ(failure.check(), v1::CHECK_TIMED_OUTPUT);
  EXPECT_EQ(failure.size(), "small");
  EXPECT_EQ(gpu_.log.back(), "check timed small");
}

// Faults of the machine, and stops.

// Every single request that may fail through the machine's fault.
void ExpectFaultAtEveryRequest(const v1::Bundle& bundle, const v1::Trial& trial, const ScriptedGpu::Times& times,
                               const Log& log) {
  for (const std::string& what : log) {
    if (absl::StartsWith(what, "restart") || what == "baseline") continue;
    ScriptedGpu gpu;
    gpu.processes = {times};
    gpu.faults[what] = RunnerFault("CUDA_ERROR_ECC_UNCORRECTABLE (214): uncorrectable");
    ScriptedObserver observer;
    absl::StatusOr<std::unique_ptr<TrialBuild>> build =
        TrialBuilder(gpu).Build(trial, std::make_shared<const v1::Bundle>(bundle), observer);
    ASSERT_TRUE(build.ok()) << build.status();
    const absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu, **build, observer);
    EXPECT_TRUE(absl::IsInternal(outcome.status())) << what << ": " << outcome.status();
    EXPECT_TRUE(BlamesGpu(outcome.status())) << what;
    EXPECT_EQ(gpu.log.back(), what) << "nothing is run on a machine that failed";
    EXPECT_TRUE(gpu.stopped() == nullptr) << "the next trial is not stopped by this one";
  }
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForAFaultOfTheMachineAtAnyRequest) {
  ExpectFaultAtEveryRequest(bundle_, trial_, {.candidate_us = 180}, kKept);
  Alone();
  ExpectFaultAtEveryRequest(bundle_, trial_, {}, kAlone);
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForAFullDisk) {
  Faster();
  Verify();
  gpu_.faults[kSanitized[0]] = absl::ResourceExhaustedError("can't write the job: is the disk full?");
  EXPECT_THAT(RunToFault(), HasSubstr("is the disk full?"));
}

TEST_F(TrialPipelineTest, BlamesNoCandidateForAProcessThatCannotLoad) {
  gpu_.faults["load"] = absl::InternalError("no memory for the pipe");
  EXPECT_EQ(RunToFault(), "no memory for the pipe");
}

// A stop during any request ends the trial there, and no process that the candidate ran in is left.
void ExpectStopAtEveryRequest(const v1::Bundle& bundle, const v1::Trial& trial, const ScriptedGpu::Times& times,
                              const Log& log) {
  for (size_t i = 0; i < log.size(); ++i) {
    if (log[i] == "restart") continue;
    ScriptedGpu gpu;
    gpu.processes = {times};
    ScriptedObserver observer;
    gpu.after = [&](const std::string&) { observer.stop = gpu.log.size() == i + 1; };
    absl::StatusOr<std::unique_ptr<TrialBuild>> build =
        TrialBuilder(gpu).Build(trial, std::make_shared<const v1::Bundle>(bundle), observer);
    ASSERT_TRUE(build.ok()) << build.status();
    const absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu, **build, observer);
    EXPECT_TRUE(absl::IsCancelled(outcome.status())) << log[i] << ": " << outcome.status();
    EXPECT_FALSE(gpu.has_spare);
    EXPECT_THAT(gpu.log, ElementsAreArray(Log(log.begin(), log.begin() + static_cast<long>(i) + 1) +
                                          Log{"restart", "restart reference"}));
    EXPECT_TRUE(gpu.stopped() == nullptr);
  }
}

TEST_F(TrialPipelineTest, EndsWithinTheRequestThatAStopComesIn) {
  ExpectStopAtEveryRequest(bundle_, trial_, {.candidate_us = 180}, kKept);
  Alone();
  ExpectStopAtEveryRequest(bundle_, trial_, {}, kAlone);
}

TEST_F(TrialPipelineTest, RunsNothingOfATrialThatWasStoppedBefore) {
  absl::StatusOr<std::unique_ptr<TrialBuild>> build = Build();
  ASSERT_TRUE(build.ok());
  observer_.stop = true;
  EXPECT_TRUE(absl::IsCancelled(RunTrial(gpu_, **build, observer_).status()));
  EXPECT_THAT(gpu_.log, ElementsAre("restart", "restart reference"));
}

// For a recording.

class MeasureBesideStartTest : public TrialPipelineTest {
 protected:
  absl::StatusOr<MeasuredVariant> TryMeasure() {
    absl::StatusOr<std::unique_ptr<TrialBuild>> build = Build();
    if (!build.ok()) return build.status();
    return MeasureBesideStart(gpu_, **build);
  }
  Log LastSteps() const { return {gpu_.log.end() - 2, gpu_.log.end()}; }
  MeasuredVariant Measure() {
    absl::StatusOr<MeasuredVariant> measured = TryMeasure();
    EXPECT_TRUE(measured.ok()) << measured.status();
    return measured.ok() ? *std::move(measured) : MeasuredVariant();
  }
};

TEST_F(MeasureBesideStartTest, ValidatesThenTimesOnceAndLeavesTheRestToLater) {
  Faster();
  const MeasuredVariant measured = Measure();
  EXPECT_FALSE(measured.result.has_failure()) << measured.result.failure().message();
  EXPECT_TRUE(measured.timed);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared));
  EXPECT_EQ(measured.result.pairs_size(), 12);
  EXPECT_EQ(measured.result.warm_us(), 180);
  EXPECT_EQ(measured.result.parent_cold_us(), 300);
  EXPECT_EQ(measured.result.errors_size(), 1);
  ASSERT_EQ(measured.resources.size(), 1u);
  EXPECT_EQ(measured.resources[0].registers(), 32);
}

TEST_F(MeasureBesideStartTest, TimesNothingThatFailsValidation) {
  gpu_.errors["check small"] = WrongOutput();
  const MeasuredVariant measured = Measure();
  EXPECT_EQ(measured.result.failure().check(), v1::CHECK_TOLERANCE);
  EXPECT_FALSE(measured.timed);
  EXPECT_THAT(LastSteps(), ElementsAre("check small", "restart"));
}

TEST_F(MeasureBesideStartTest, RecordsNoTimesOfAnUnsteadyGpu) {
  gpu_.processes = {{.unsteady = true}};
  const MeasuredVariant measured = Measure();
  EXPECT_EQ(measured.result.failure().check(), v1::CHECK_UNSTEADY);
  EXPECT_EQ(measured.result.failure().size(), "main");
  EXPECT_EQ(measured.result.discarded(), 10);
  EXPECT_FALSE(measured.timed);
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kRestarted + kCompared));
}

TEST_F(MeasureBesideStartTest, RecordsTheTimesThatAreBelowTheRooflineFloor) {
  gpu_.processes = {{.candidate_us = 50}};
  const MeasuredVariant measured = Measure();
  EXPECT_EQ(measured.result.failure().check(), v1::CHECK_ROOFLINE);
  EXPECT_TRUE(measured.timed);
  EXPECT_EQ(measured.result.pairs_size(), 12);
}

TEST_F(MeasureBesideStartTest, ValidatesAgainWhatIsMoreThanTenTimesAsFast) {
  gpu_.processes = {{.candidate_us = 200, .parent_us = 2500}};
  EXPECT_FALSE(Measure().result.has_failure());
  EXPECT_THAT(gpu_.log, ElementsAreArray(Validated(2) + kCompared + kMoreSizes + Validated(20)));

  gpu_.log.clear();
  gpu_.failures["call main x20"] = Failure(v1::CHECK_FAULT);
  const MeasuredVariant measured = Measure();
  EXPECT_EQ(measured.result.failure().check(), v1::CHECK_FAULT);
  EXPECT_THAT(LastSteps(), ElementsAre("call main x20", "restart"));
}

TEST_F(MeasureBesideStartTest, EndsWhereTheReferenceDoesNotRunSinceNoOtherVariantWould) {
  for (const char* what : {"check small", "check timed main"}) {
    gpu_.failures = {{what, Failure(v1::CHECK_FAULT, "trap")}};
    const absl::Status status = TryMeasure().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the reference of copy failed"));
  }
}

TEST_F(MeasureBesideStartTest, RunsNothingThatDoesNotBuild) {
  *gpu_.builds["-DTILE=64"].mutable_failure() = Failure(v1::CHECK_COMPILE);
  EXPECT_EQ(Measure().result.failure().check(), v1::CHECK_COMPILE);
  EXPECT_THAT(gpu_.log, IsEmpty());
}

}  // namespace
}  // namespace pawl
