// How inputs of problem.py reach the runner and its outputs the reference process, without a GPU.
#include "worker/validate/provided_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"
#include "worker/trial/timer.h"
#include "worker/validate/checked_call.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProvidedInputsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<v1::Size> sizes(bundle_.sizes().begin(), bundle_.sizes().end());
    built_ = *BuildVariant(gpu_.builder(), bundle_, StartVariant(bundle_), sizes, gpu_.gpu());
  }

  absl::StatusOr<CheckedCall> Call(const CheckedCallOptions& options = {}) {
    return CallAndCheck(gpu_, bundle_, built_.sizes[0], FreshDraw(), options);
  }

  absl::StatusOr<Timing> Time(uint32_t data = 0) {
    return TimeAgainst(gpu_, bundle_, built_.sizes[1], built_.sizes[1], {.data = data});
  }

  // The number of the inputs that timed calls have.
  uint32_t TimedData(uint32_t data = 0) { return Time(data)->times.pairs(0).data(); }

  // The seeds of entries that were made for timed calls.
  std::vector<uint64_t> TimedSeeds() const {
    std::vector<uint64_t> seeds;
    for (const auto& [pool, seed] : gpu_.made_seeds) {
      if (absl::StartsWith(pool, "timed main")) seeds.push_back(seed);
    }
    return seeds;
  }

  // Of the entries that the runner was given for timed calls.
  int64_t TimedEntries() const {
    return std::count_if(gpu_.provided.begin(), gpu_.provided.end(),
                         [](const std::string& what) { return absl::StartsWith(what, "runner timed main"); });
  }

  ScriptedGpu gpu_;
  v1::Bundle bundle_ = ProblemBundle();
  BuiltVariant built_;
};

// A variable that the host fills, whose tensor comes after one that only the kernel has.
TEST_F(ProvidedInputsTest, ThePlanOfTheReferenceProcessHasNoSymbols) {
  v1::Tensor& scratch = *bundle_.add_tensors();
  scratch.set_name("partial");
  scratch.set_type(v1::DATA_TYPE_F32);
  scratch.add_shape("N");
  scratch.set_role(v1::TENSOR_ROLE_SCRATCH);
  v1::Tensor& taps = *bundle_.add_tensors();
  taps.set_name("taps");
  taps.set_type(v1::DATA_TYPE_F32);
  taps.add_shape("17");
  taps.set_role(v1::TENSOR_ROLE_INPUT);
  taps.set_is_static(true);
  taps.set_fill(v1::FILL_NORMAL);
  v1::Symbol& symbol = *bundle_.add_symbols();
  symbol.set_name("taps");
  symbol.set_tensor("taps");
  const std::vector<v1::Size> sizes(bundle_.sizes().begin(), bundle_.sizes().end());
  built_ = *BuildVariant(gpu_.builder(), bundle_, StartVariant(bundle_), sizes, gpu_.gpu());
  ASSERT_EQ(built_.sizes[0].plan.symbols(0).tensor(), 3);
  EXPECT_EQ(Call().status(), absl::OkStatus());
  EXPECT_EQ(Time().status(), absl::OkStatus());
}

TEST_F(ProvidedInputsTest, EveryCallGetsFreshInputsAndTheReferenceProcessTheExpectedOutputs) {
  ASSERT_TRUE(Call().ok());
  ASSERT_TRUE(Call().ok());
  EXPECT_THAT(gpu_.problem_log, ElementsAre("check small", "make small", "make small"));
  EXPECT_THAT(gpu_.provided, ElementsAre("runner fresh 0 in", "reference fresh expected 0 out", "runner fresh 1 in",
                                         "reference fresh expected 1 out"));
  EXPECT_THAT(gpu_.compiled(), Each(Not(HasSubstr("reference"))));
  EXPECT_FALSE(gpu_.runner().HasEntry("fresh", 0)) << "what is no longer used takes no memory";
}

TEST_F(ProvidedInputsTest, ASelfTestAlsoGetsTheInputs) {
  ASSERT_TRUE(Call({.repeats = 1, .self_test = true, .own_rms = {}}).ok());
  EXPECT_THAT(gpu_.provided, Contains("reference fresh 0 in"));
}

TEST_F(ProvidedInputsTest, AFreshRunnerGetsTheSameInputsAgain) {
  v1::RunnerReply died;
  died.mutable_failure()->set_check(v1::CHECK_FAULT);
  died.set_runner_died(true);
  gpu_.once["call small x1"] = died;
  const absl::StatusOr<CheckedCall> called = Call();
  ASSERT_TRUE(called.ok()) << called.status();
  EXPECT_FALSE(called->failure);
  EXPECT_THAT(gpu_.problem_log, ElementsAre("check small", "make small", "stage fresh 0"));
}

TEST_F(ProvidedInputsTest, AWrongProblemIsTheBundlesFaultBeforeAnythingRuns) {
  gpu_.faults["check small"] = absl::InvalidArgumentError("problem.py:3 in inputs(): KeyError: 'M'");
  const absl::StatusOr<CheckedCall> called = Call();
  EXPECT_TRUE(absl::IsInvalidArgument(called.status()));
  EXPECT_THAT(gpu_.log, ElementsAre());
}

TEST_F(ProvidedInputsTest, TimedCallsDrawFromAPoolWhoseOutputsAreChecked) {
  const absl::StatusOr<Timing> timing = Time();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_FALSE(timing->failure);
  EXPECT_EQ(TimedEntries(), 8);
  ASSERT_EQ(timing->times.checked_size(), 1);
  EXPECT_THAT(timing->times.checked(0).pool(), StartsWith("timed main"));
  EXPECT_THAT(gpu_.log, Contains("check timed main"));
}

TEST_F(ProvidedInputsTest, WhatAllHaveIsMadeOnceForAllProcesses) {
  ASSERT_TRUE(Time().ok());
  gpu_.runner().Restart();
  ASSERT_TRUE(Time().ok());
  EXPECT_EQ(TimedEntries(), 16);
  EXPECT_EQ(std::count(gpu_.problem_log.begin(), gpu_.problem_log.end(), "make main"), 8);
}

TEST_F(ProvidedInputsTest, APoolThatTakesLongToMakeIsSmall) {
  EXPECT_FALSE(IsQuickToMake(gpu_, bundle_, built_.sizes[1].plan)) << "not known yet";
  gpu_.make_seconds = 3;
  ASSERT_TRUE(Time().ok());
  EXPECT_EQ(TimedEntries(), 2);
  EXPECT_FALSE(IsQuickToMake(gpu_, bundle_, built_.sizes[1].plan));
  gpu_.make_seconds = 0;
  ASSERT_TRUE(TimeAgainst(gpu_, bundle_, built_.sizes[0], built_.sizes[0], TimingOptions()).ok());
  EXPECT_TRUE(IsQuickToMake(gpu_, bundle_, built_.sizes[0].plan));
}

TEST_F(ProvidedInputsTest, PairsSayWhichInputsTheyHad) {
  const uint32_t first = TimedData();
  EXPECT_NE(first, 0);
  EXPECT_EQ(TimedData(), first);
  EXPECT_TRUE(IsOwnData(gpu_.pools(), first));
  EXPECT_FALSE(IsOwnData(ScriptedGpu().pools(), first)) << "but once in 65,536 times";
}

TEST_F(ProvidedInputsTest, ThePoolOfOtherSizesAndRangesIsAnother) {
  const uint32_t number = TimedData();
  const std::vector<uint64_t> seeds = TimedSeeds();
  BuiltSize changed = built_.sizes[1];
  for (auto& [name, value] : *changed.plan.mutable_sizes()) value += 1;
  gpu_.made_seeds.clear();
  const absl::StatusOr<Timing> timing = TimeAgainst(gpu_, bundle_, changed, changed, TimingOptions());
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->times.pairs(0).data(), number);
  EXPECT_EQ(TimedSeeds().size(), seeds.size()) << "made again";
  EXPECT_NE(TimedSeeds(), seeds);
}

// What is learned of them by one that is not kept helps none that comes later.
TEST_F(ProvidedInputsTest, OfTheSeatAreOthersOnceOneThatWasNotKeptHasSeenThem) {
  const uint32_t number = SeatData(gpu_.pools(), bundle_);
  EXPECT_NE(number, TimedData());
  EXPECT_EQ(SeatData(gpu_.pools(), bundle_), number);
  v1::Bundle other = bundle_;
  other.mutable_problem()->set_text("another");
  EXPECT_NE(SeatData(gpu_.pools(), other), number);
  EXPECT_EQ(TimedData(number), number);
  RenewSeatData(gpu_.pools(), bundle_, {"parent"});
  EXPECT_EQ(SeatData(gpu_.pools(), bundle_), number) << "nobody has seen them";
  SeeSeatData(gpu_.pools(), bundle_, "candidate");
  RenewSeatData(gpu_.pools(), bundle_, {"candidate", "another"});
  EXPECT_EQ(SeatData(gpu_.pools(), bundle_), number) << "it is the parent now";
  RenewSeatData(gpu_.pools(), bundle_, {"parent", "another"});
  const uint32_t later = SeatData(gpu_.pools(), bundle_);
  EXPECT_NE(later, number);
  EXPECT_THAT(gpu_.problem_log, Not(Contains(StartsWith("forget"))));
  EXPECT_EQ(TimedData(later), later);
  EXPECT_THAT(gpu_.problem_log, Contains(StartsWith("forget timed main"))) << "its memory is free";
}

TEST_F(ProvidedInputsTest, TheSameNumberStandsForTheSameInputs) {
  const uint32_t number = NewData(gpu_.pools());
  EXPECT_EQ(TimedData(number), number);
  const std::vector<uint64_t> seeds = TimedSeeds();
  EXPECT_NE(TimedData(NewData(gpu_.pools())), number);
  gpu_.made_seeds.clear();
  EXPECT_EQ(TimedData(number), number);
  EXPECT_EQ(TimedSeeds(), seeds);
}

// Who knows what an earlier candidate was given could have the answers in the code of the next.
TEST_F(ProvidedInputsTest, FreshInputsLeaveThoseThatAreUsedAgainAsTheyAre) {
  gpu_.make_seconds = 3;
  const uint32_t first = TimedData(), of_seat = SeatData(gpu_.pools(), bundle_), fresh = NewData(gpu_.pools());
  EXPECT_EQ(TimedData(of_seat), of_seat);
  EXPECT_EQ(TimedData(fresh), fresh);
  gpu_.runner().Restart();
  EXPECT_EQ(TimedData(), first);
  EXPECT_EQ(TimedData(of_seat), of_seat);
  EXPECT_EQ(TimedSeeds().size(), 6) << "all are there";
  TimedData(NewData(gpu_.pools()));
  EXPECT_EQ(std::count_if(gpu_.problem_log.begin(), gpu_.problem_log.end(),
                          [](const std::string& text) { return absl::StartsWith(text, "forget"); }),
            1)
      << "the fresh ones before";
}

TEST_F(ProvidedInputsTest, ThePoolOfAnotherSizeMakesRoom) {
  ASSERT_TRUE(Time().ok());
  const std::string pool = gpu_.pools().timed;
  EXPECT_TRUE(gpu_.runner().HasEntry(pool, 0));
  ASSERT_TRUE(TimeAgainst(gpu_, bundle_, built_.sizes[0], built_.sizes[0], TimingOptions()).ok());
  EXPECT_FALSE(gpu_.runner().HasEntry(pool, 0));
}

TEST_F(ProvidedInputsTest, AReferenceProcessThatLostExpectedOutputsIsADoubtfulCall) {
  gpu_.after = [&](const std::string& what) {
    if (what != "call small x1") return;
    gpu_.after = nullptr;
    gpu_.reference().Restart();
  };
  const absl::StatusOr<CheckedCall> called = Call();
  ASSERT_TRUE(called.ok()) << called.status();
  EXPECT_FALSE(called->failure);
  EXPECT_THAT(gpu_.problem_log, ElementsAre("check small", "make small", "stage fresh 0"));
}

TEST_F(ProvidedInputsTest, ItsOwnCheckTakesThePlaceOfTheTolerance) {
  gpu_.own_check = "row 3 is not sorted";
  const absl::StatusOr<CheckedCall> called = Call();
  ASSERT_TRUE(called.ok()) << called.status();
  ASSERT_TRUE(called->failure);
  EXPECT_EQ(called->failure->message(), "check() of problem.py: row 3 is not sorted");
  EXPECT_THAT(gpu_.log, ElementsAre("call small x1"));
  gpu_.own_check = "";
  EXPECT_FALSE(Call()->failure);
  const absl::StatusOr<Timing> timing = Time();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_FALSE(timing->failure);
}

TEST_F(ProvidedInputsTest, ValidationUsesSeveralSeedsAtSmallSizes) {
  ValidationOptions options;
  options.small = 1;
  options.inputs = DistributionsFor(bundle_);
  EXPECT_EQ(options.inputs, InputMagnitudes({{v1::DISTRIBUTION_SCALED, 0}})) << "problem.py makes the only input";
  const absl::StatusOr<Validation> validation = Validate(gpu_, bundle_, built_, options);
  ASSERT_TRUE(validation.ok()) << validation.status();
  EXPECT_FALSE(validation->failure);
  EXPECT_EQ(std::count(gpu_.problem_log.begin(), gpu_.problem_log.end(), "make small"), 4);
  EXPECT_THAT(gpu_.problem_log, Contains("make small DISTRIBUTION_SCALED"));
  EXPECT_EQ(std::count(gpu_.problem_log.begin(), gpu_.problem_log.end(), "make main"), 1);
}

TEST_F(ProvidedInputsTest, AProblemThatTakesNoScaledInputsLosesNothingElse) {
  gpu_.faults["make small DISTRIBUTION_SCALED"] = absl::InvalidArgumentError("reference() did not end within 60 s");
  const absl::StatusOr<std::optional<FoundMagnitudes>> found = FindMagnitudes(gpu_, bundle_, built_, 1);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_TRUE((*found)->magnitudes.empty());
  EXPECT_THAT((*found)->note, HasSubstr("did not end within 60 s"));
  EXPECT_EQ(std::count(gpu_.problem_log.begin(), gpu_.problem_log.end(), "make small DISTRIBUTION_SCALED"), 1)
      << "one that hangs is not asked again";
  ValidationOptions options;
  options.small = 1;
  options.inputs[v1::DISTRIBUTION_SCALED] = 4;
  const absl::StatusOr<Validation> validation = Validate(gpu_, bundle_, built_, options);
  ASSERT_TRUE(validation.ok()) << validation.status();
  EXPECT_FALSE(validation->failure);
}

TEST_F(ProvidedInputsTest, ACheckThatAcceptsWhatIsWrongIsRefused) {
  gpu_.own_check = "";
  gpu_.lenient = {"out: all zeros"};
  ValidationOptions options;
  options.self_test = true;
  const absl::StatusOr<Validation> validation = Validate(gpu_, bundle_, built_, options);
  ASSERT_TRUE(validation.ok()) << validation.status();
  ASSERT_TRUE(validation->failure);
  EXPECT_THAT(validation->failure->message(), HasSubstr("check() of problem.py accepts what is wrong: out: all zeros"));
}

}  // namespace
}  // namespace pawl
