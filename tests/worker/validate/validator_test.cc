// Which sizes and inputs validation uses, and that a kernel that is wrong for one kind of them is caught, without a
// GPU.
#include "worker/validate/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "kernels/hidden_sizes.h"
#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const v1::Distribution kDistributions[] = {
    v1::DISTRIBUTION_WIDE_NORMAL, v1::DISTRIBUTION_HEAVY_TAILS, v1::DISTRIBUTION_LARGE,
    v1::DISTRIBUTION_EQUAL,       v1::DISTRIBUTION_SORTED,      v1::DISTRIBUTION_ZEROS,
    v1::DISTRIBUTION_DENORMAL,    v1::DISTRIBUTION_EXTREMES,    v1::DISTRIBUTION_STRIPED};

v1::RunnerReply Died() {
  v1::RunnerReply reply;
  reply.mutable_failure()->set_check(v1::CHECK_FAULT);
  reply.mutable_failure()->set_message("the runner died");
  reply.set_runner_died(true);
  return reply;
}

v1::RunnerReply OutOfMemory() {
  v1::RunnerReply reply;
  reply.mutable_failure()->set_check(v1::CHECK_OUT_OF_MEMORY);
  reply.mutable_failure()->set_message("CUDA 2");
  return reply;
}

class ValidatorTest : public testing::Test {
 protected:
  // As a trial validates a candidate.
  Validation Run(InputVariety variety = InputVariety::kSpread) {
    const SizesToValidate sizes = AllSizes(bundle_);
    built_ = *BuildVariant(gpu_.builder(), bundle_, StartVariant(bundle_), sizes.all, gpu_.gpu());
    options_.small = sizes.small;
    options_.inputs = inputs_.value_or(DistributionsFor(bundle_));
    options_.variety = variety;
    absl::StatusOr<Validation> validation = Validate(gpu_, bundle_, built_, options_);
    EXPECT_TRUE(validation.ok()) << validation.status();
    return validation.ok() ? *validation : Validation();
  }

  std::string Failure(InputVariety variety = InputVariety::kSpread) {
    const Validation validation = Run(variety);
    return validation.failure ? validation.failure->message() : "";
  }

  void OpenRange() {
    bundle_.mutable_tensors(0)->clear_low();
    bundle_.mutable_tensors(0)->clear_high();
  }

  v1::Bundle bundle_ = CopyBundle();
  ScriptedGpu gpu_;
  BuiltVariant built_;
  ValidationOptions options_;
  std::optional<InputMagnitudes> inputs_;
};

TEST_F(ValidatorTest, UsesEveryDistributionOnceAndTheBundlesOwnFillEverywhere) {
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(gpu_.log, testing::ElementsAre("call hidden x2", "check hidden", "call hidden x2", "check hidden",
                                             "call small x2", "check small", "call main x2", "check main"));
  EXPECT_EQ(gpu_.other_inputs.size(), 2 * std::size(kDistributions)) << "a call and a check of each";
  std::set<std::string> used;
  for (const std::string& what : gpu_.other_inputs) used.insert(what.substr(what.rfind(' ')));
  EXPECT_EQ(used.size(), std::size(kDistributions));
}

TEST_F(ValidatorTest, UsesEveryDistributionAtAllSmallSizesOfWhatIsAboutToBeKept) {
  EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
  EXPECT_EQ(gpu_.other_inputs.size(), 2 * 3 * std::size(kDistributions));
  EXPECT_THAT(gpu_.other_inputs, Contains("call small ZEROS"));
  EXPECT_THAT(gpu_.other_inputs, Not(Contains("call main ZEROS")));
}

TEST_F(ValidatorTest, CatchesAKernelThatIsWrongForOneDistributionInEveryTrial) {
  for (const v1::Distribution distribution : kDistributions) {
    gpu_.wrong = [&](const v1::Plan&, const v1::InputDraw& draw) { return draw.distribution() == distribution; };
    for (int trial = 0; trial < 5; ++trial) {
      EXPECT_THAT(Failure(), HasSubstr("with " + DistributionText(distribution) + ": "));
    }
  }
}

TEST_F(ValidatorTest, CatchesAKernelThatIsWrongForOneKindOfSizeInEveryTrial) {
  (*bundle_.mutable_hidden())["N"].set_low(1);
  (*bundle_.mutable_hidden())["N"].set_high(300);
  bundle_.mutable_sizes(0)->mutable_values()->at("N") = 1001;  // odd, no power of two, not large
  bundle_.mutable_sizes(1)->mutable_values()->at("N") = 1003;
  const std::pair<const char*, std::function<bool(int)>> kinds[] = {
      {"even", [](int n) { return n % 2 == 0; }},
      {"small and odd", [](int n) { return n < 300 && n % 2 == 1; }},
      {"powers of two", [](int n) { return n > 1 && (n & (n - 1)) == 0; }},
      {"the largest hidden size", [](int n) { return n == 300; }},
      {"1", [](int n) { return n == 1; }}};
  for (const auto& [name, is_wrong] : kinds) {
    gpu_.wrong = [&, &is_wrong = is_wrong](const v1::Plan& plan, const v1::InputDraw&) {
      return is_wrong(plan.sizes().at("N"));
    };
    for (int trial = 0; trial < 20; ++trial) EXPECT_NE(Failure(), "") << name;
  }
}

TEST_F(ValidatorTest, UsesDistributionsOfIntegersForIntegers) {
  bundle_.mutable_tensors(0)->set_type(v1::DATA_TYPE_I32);
  EXPECT_EQ(Failure(), "");
  std::set<std::string> used;
  for (const std::string& what : gpu_.other_inputs) used.insert(what.substr(what.rfind(' ') + 1));
  EXPECT_THAT(used, testing::ElementsAre("EQUAL", "EXTREMES", "HEAVY_TAILS", "LARGE", "SORTED", "ZEROS"));
}

TEST_F(ValidatorTest, KeepsTheStructureOfIndices) {
  bundle_.mutable_tensors(0)->set_type(v1::DATA_TYPE_I64);
  bundle_.mutable_tensors(0)->clear_low();
  bundle_.mutable_tensors(0)->clear_high();
  for (const v1::Fill fill : {v1::FILL_PERMUTATION, v1::FILL_IOTA, v1::FILL_BYTES}) {
    bundle_.mutable_tensors(0)->set_fill(fill);
    EXPECT_EQ(Failure(), "");
    EXPECT_THAT(gpu_.other_inputs, testing::IsEmpty()) << v1::Fill_Name(fill);
    EXPECT_FALSE(LeavesRangeOpen(bundle_));
  }
}

TEST_F(ValidatorTest, UsesEveryDistributionForWhatIsChangedInPlace) {
  bundle_.mutable_tensors(0)->set_role(v1::TENSOR_ROLE_INOUT);
  EXPECT_EQ(DistributionsFor(bundle_).size(), std::size(kDistributions));
  OpenRange();
  EXPECT_TRUE(LeavesRangeOpen(bundle_));
}

TEST_F(ValidatorTest, HandsFilesOverOnceAProcess) {
  bundle_.clear_hidden();
  bundle_.mutable_sizes()->DeleteSubrange(1, 1);
  bundle_.mutable_goal()->set_size("small");
  bundle_.mutable_tensors(0)->set_fill(v1::FILL_FILE);
  bundle_.mutable_tensors(0)->set_file("data.bin");
  OpenRange();
  bundle_.add_data_files()->set_path("data.bin");
  bundle_.mutable_data_files(0)->set_data(std::string(4000, 'x'));
  EXPECT_EQ(Failure(), "");
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(gpu_.provided, testing::ElementsAre("runner file of 4000 bytes", "reference file of 4000 bytes"));
  gpu_.runner().Restart();
  EXPECT_EQ(Failure(), "");
  EXPECT_EQ(gpu_.provided.size(), 3u);
}

TEST_F(ValidatorTest, AsksForTheRangeOfIndicesAfterAFault) {
  bundle_.mutable_tensors(0)->set_type(v1::DATA_TYPE_I32);
  gpu_.failures["call small x2"].set_check(v1::CHECK_FAULT);
  gpu_.failures["call small x2"].set_message("an illegal memory access");
  EXPECT_THAT(Failure(), HasSubstr("an illegal memory access. Do all indices exist in what they point into? Check the "
                                   "range of in (-1000 to 1000)"));
}

TEST_F(ValidatorTest, ComparesNothingWithAReferenceThatIsNotFinite) {
  gpu_.overflows = [](const v1::Plan&, const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_LARGE;
  };
  EXPECT_EQ(Failure(), "") << "the range is stated: there is nothing smaller to try";
}

TEST_F(ValidatorTest, TriesSmallerInputsWhereTheReferenceIsNotFiniteOrTheStartIsWrong) {
  OpenRange();
  inputs_ = InputMagnitudes{{v1::DISTRIBUTION_LARGE, 1024}};
  gpu_.overflows = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.magnitude() > 10; };
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.distribution() != 0; };
  EXPECT_THAT(Failure(), HasSubstr("with inputs of large magnitude, up to 2.38419e-07: "));
}

TEST_F(ValidatorTest, FailsNothingForOneDrawOfFewValuesThatRoundsTheOtherWay) {
  int draws = 0;
  gpu_.wrong = [&](const v1::Plan&, const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_EQUAL && ++draws == 1;
  };
  EXPECT_EQ(Failure(), "");
  EXPECT_EQ(draws, 2) << "drawn once more";
}

// One sum whose terms cancel may be all of an output.
TEST_F(ValidatorTest, TheNormOfAnOutputOfFewElementsMustBeOffFourTimes) {
  for (const v1::Distribution drawn : {v1::DISTRIBUTION_UNSPECIFIED, v1::DISTRIBUTION_SORTED}) {
    SCOPED_TRACE(v1::Distribution_Name(drawn));
    std::map<std::string, int> calls;  // by size
    int off = 3;
    gpu_.wrong_elements = 0;
    gpu_.wrong = [&](const v1::Plan& plan, const v1::InputDraw& draw) {
      return plan.tensors(1).elements() < 64 && draw.distribution() == drawn && ++calls[plan.size()] <= off;
    };
    EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
    EXPECT_FALSE(calls.empty()) << "there are hidden sizes of few elements";
    off = 1000;
    EXPECT_NE(Failure(InputVariety::kEverywhere), "");
    calls.clear();
    off = 1;
    gpu_.wrong_elements = 1;
    EXPECT_NE(Failure(InputVariety::kEverywhere), "") << "an element is off by more than the absolute limit";
  }
}

TEST_F(ValidatorTest, MakesTheCallAgainInAFreshRunnerAfterOneThatDiedOrRanOutOfMemory) {
  for (const v1::RunnerReply& reply : {Died(), OutOfMemory()}) {
    for (const char* where : {"call small x2", "load"}) {
      gpu_.log.clear();
      gpu_.once[where] = reply;
      EXPECT_EQ(Failure(), "") << where;
      EXPECT_THAT(gpu_.log, Contains("restart"));
      EXPECT_TRUE(gpu_.once.empty());
    }
  }
}

TEST_F(ValidatorTest, FailsWhatDiesInAFreshRunnerToo) {
  gpu_.once["call small x2"] = Died();
  gpu_.failures["call small x2"] = OutOfMemory().failure();
  const Validation validation = Run();
  ASSERT_TRUE(validation.failure.has_value());
  EXPECT_EQ(validation.failure->check(), v1::CHECK_OUT_OF_MEMORY);
  EXPECT_EQ(validation.failure->size(), "small");
  EXPECT_EQ(std::count(gpu_.log.begin(), gpu_.log.end(), "restart"), 1) << "once";
}

TEST_F(ValidatorTest, MakesTheCallAgainWhereTheReferenceDidNotFit) {
  gpu_.once["check small"] = OutOfMemory();
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(gpu_.log, Contains("restart reference"));
}

TEST_F(ValidatorTest, RejectsAVariantThatTakesMuchMemoryBesideItsTensors) {
  gpu_.module_bytes = gpu_.gpu().memory_bytes() / 4;
  const Validation validation = Run();
  ASSERT_TRUE(validation.failure);
  EXPECT_EQ(validation.failure->check(), v1::CHECK_OUT_OF_MEMORY);
  EXPECT_THAT(validation.failure->message(),
              AllOf(HasSubstr("beside the contract's tensors it takes 32768 MiB of the GPU's memory"),
                    HasSubstr("code and globals 32768, scratch 0, stacks 0"), HasSubstr("at most 16384 MiB")));
  gpu_.module_bytes = gpu_.gpu().memory_bytes() / 8;
  EXPECT_EQ(Failure(), "");
}

TEST_F(ValidatorTest, CountsStacksOfAllThreadsThatTheGpuHolds) {
  gpu_.local_bytes = 128 << 10;
  EXPECT_THAT(Failure(), HasSubstr("stacks"));
  gpu_.local_bytes = 1 << 10;
  EXPECT_EQ(Failure(), "");
}

v1::OutputError Off(double strain) {
  v1::OutputError error;
  error.set_wrong(strain > 1 ? 5 : 0);
  error.set_first_wrong(-1);
  error.set_max_absolute(0.01 * strain);
  error.set_relative(0.01 * strain / 2);
  return error;
}

// The candidate's error with sorted inputs and the start's, in shares of the limit.
class StrainedStart : public ValidatorTest {
 protected:
  std::string FailureWith(double candidate, double start) {
    for (const char* size : {"hidden", "small"}) gpu_.errors[absl::StrCat("check ", size, " SORTED")] = Off(candidate);
    gpu_.errors["check start SORTED"] = Off(start);
    options_.start = [this](const v1::Plan& at) -> absl::StatusOr<const BuiltSize*> {
      start_ = *built_.Find(at.size());
      start_.plan.set_size("start");
      return &start_;
    };
    return Failure();
  }
  BuiltSize start_;
};

TEST_F(StrainedStart, AllowsACandidateThatIsOffByLittleMoreThanTheStart) {
  EXPECT_EQ(FailureWith(2.5, 0.7), "");
  EXPECT_EQ(FailureWith(3.9, 1), "");
}

TEST_F(StrainedStart, AllowsNoneThatIsOffByMuchMore) {
  EXPECT_THAT(FailureWith(3, 0.7), HasSubstr("with sorted inputs"));
  EXPECT_THAT(FailureWith(500, 1), HasSubstr("with sorted inputs"));
}

TEST_F(StrainedStart, AllowsNothingWhereTheStartIsWellWithinTheLimits) {
  EXPECT_THAT(FailureWith(1.5, 0.49), HasSubstr("with sorted inputs"));
  EXPECT_THAT(FailureWith(1.1, 0), HasSubstr("with sorted inputs"));
}

TEST_F(StrainedStart, AllowsNothingWithTheBundlesOwnFill) {
  gpu_.errors["check small"] = Off(1.1);
  EXPECT_NE(FailureWith(0, 0.9), "");
}

TEST_F(StrainedStart, AllowsNothingWithoutAStartToAsk) {
  gpu_.errors["check small SORTED"] = gpu_.errors["check hidden SORTED"] = Off(1.1);
  options_.start = nullptr;
  EXPECT_NE(Failure(), "");
  options_.start = [](const v1::Plan&) -> absl::StatusOr<const BuiltSize*> { return nullptr; };
  EXPECT_NE(Failure(), "");
}

TEST_F(ValidatorTest, HoldsIntegersToTheirExactValues) {
  bundle_.mutable_tensors(1)->set_type(v1::DATA_TYPE_I32);
  v1::OutputError off;
  off.set_wrong(1);
  off.set_first_wrong(3);
  off.set_max_absolute(1);
  gpu_.errors["check small"] = off;
  EXPECT_THAT(Failure(), HasSubstr("it must be exact"));
}

// The start variant, with which the bundle itself is tested.

TEST_F(ValidatorTest, RefusesAToleranceThatTypesDoNotJustify) {
  options_.self_test = true;
  EXPECT_EQ(Failure(), "");
  bundle_.mutable_tolerance()->set_relative(0.6);
  const Validation validation = Run();
  ASSERT_TRUE(validation.failure.has_value());
  EXPECT_EQ(validation.failure->check(), v1::CHECK_LENIENT);
  EXPECT_THAT(validation.failure->message(), HasSubstr("would do"));
  options_.self_test = false;
  EXPECT_EQ(Failure(), "") << "candidates do not answer for the bundle";
}

TEST_F(ValidatorTest, SaysWhatRangeWouldDoWhereTheStartIsWrongInTheStatedOne) {
  options_.self_test = true;
  gpu_.wrong = [](const v1::Plan& plan, const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_LARGE && plan.tensors(0).high() > 100;
  };
  EXPECT_THAT(Failure(InputVariety::kEverywhere),
              HasSubstr("The bundle states a range in which its start variant is wrong; in range = [-62.5, 62.5] would "
                        "do"));
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_LARGE; };
  EXPECT_THAT(Failure(InputVariety::kEverywhere), HasSubstr("and so it is in narrower ones"));
}

// How large inputs may be where the bundle does not say.

TEST_F(ValidatorTest, FindsTheLargestInputsForWhichTheReferenceIsFinite) {
  OpenRange();
  EXPECT_EQ(Failure(), "");
  gpu_.overflows = [](const v1::Plan&, const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_LARGE && draw.magnitude() > 3e9;
  };
  const auto found = FindMagnitudes(gpu_, bundle_, built_, options_.small);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->magnitudes.at(v1::DISTRIBUTION_SORTED), std::ldexp(1.0, 127)) << "all that the type holds";
  EXPECT_EQ((*found)->magnitudes.at(v1::DISTRIBUTION_LARGE), std::ldexp(1.0, 31 - 3)) << "with a margin";
  EXPECT_EQ((*found)->note, "") << "the start variant is right wherever the reference is";
}

// No error is large beside a norm that is infinite.
TEST_F(ValidatorTest, FindsTheLargestInputsForWhichTheNormOfTheReferenceIsFinite) {
  OpenRange();
  EXPECT_EQ(Failure(), "");
  gpu_.squares_overflow = [](const v1::Plan&, const v1::InputDraw& draw) { return draw.magnitude() > 3e9; };
  const auto found = FindMagnitudes(gpu_, bundle_, built_, options_.small);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->magnitudes.at(v1::DISTRIBUTION_LARGE), std::ldexp(1.0, 31 - 3));
}

TEST_F(ValidatorTest, FindsTheLargestInputsForWhichTheStartVariantIsRight) {
  OpenRange();
  EXPECT_EQ(Failure(), "");
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_SORTED ||
           (draw.distribution() == v1::DISTRIBUTION_LARGE && draw.magnitude() > 100);
  };
  const auto found = FindMagnitudes(gpu_, bundle_, built_, options_.small);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->magnitudes.at(v1::DISTRIBUTION_LARGE), 8);
  EXPECT_FALSE((*found)->magnitudes.contains(v1::DISTRIBUTION_SORTED)) << "left out";
  EXPECT_THAT((*found)->note, HasSubstr("with inputs of large magnitude up to 8, not with sorted inputs"));
}

TEST_F(ValidatorTest, ScalesFloatsThatOnlyProblemPyKnowsOf) {
  bundle_.mutable_tensors(0)->set_fill(v1::FILL_PROBLEM);
  bundle_.mutable_tensors(0)->clear_low();
  bundle_.mutable_tensors(0)->clear_high();
  EXPECT_TRUE(LeavesRangeOpen(bundle_));
  EXPECT_THAT(DistributionsFor(bundle_), testing::ElementsAre(testing::Pair(v1::DISTRIBUTION_SCALED, 0)));
  bundle_.mutable_tensors(0)->set_type(v1::DATA_TYPE_I32);
  EXPECT_FALSE(LeavesRangeOpen(bundle_));
  EXPECT_THAT(DistributionsFor(bundle_), testing::IsEmpty());
}

// Inputs that problem.py makes, which are tried times a power of two.
class ScaledInputs : public ValidatorTest {
 protected:
  ScaledInputs() {
    bundle_ = ProblemBundle();
    inputs_ = InputMagnitudes{{v1::DISTRIBUTION_SCALED, 1024}};
  }

  // The start variant is asked at a size of this name.
  void AskStart() {
    options_.start = [this](const v1::Plan& at) -> absl::StatusOr<const BuiltSize*> {
      start_ = *built_.Find(at.size());
      start_.plan.set_size("start");
      return &start_;
    };
  }

  static bool IsScaled(const v1::InputDraw& draw) { return draw.distribution() == v1::DISTRIBUTION_SCALED; }

  int64_t CallsAt(const std::string& size) const {
    return std::count(gpu_.other_inputs.begin(), gpu_.other_inputs.end(), absl::StrCat("call ", size, " SCALED"));
  }

  BuiltSize start_;
};

TEST_F(ScaledInputs, AreTriedOnceAtEverySizeOfWhatIsAboutToBeKept) {
  EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
  EXPECT_EQ(CallsAt("hidden"), 2);
  EXPECT_EQ(CallsAt("small"), 1);
  EXPECT_EQ(CallsAt("main"), 1);
}

TEST_F(ScaledInputs, AreTriedAtOneSmallSizeOfOthers) {
  EXPECT_EQ(Failure(), "");
  EXPECT_EQ(CallsAt("hidden") + CallsAt("small"), 1);
  EXPECT_EQ(CallsAt("main"), 0);
}

TEST_F(ScaledInputs, CatchAKernelThatIsWrongWithThemAboveTheHiddenSizesOnly) {
  gpu_.wrong = [](const v1::Plan& plan, const v1::InputDraw& draw) { return IsScaled(draw) && plan.size() == "main"; };
  AskStart();
  const Validation validation = Run(InputVariety::kEverywhere);
  ASSERT_TRUE(validation.failure.has_value());
  EXPECT_EQ(validation.failure->size(), "main");
  EXPECT_THAT(validation.failure->message(), HasSubstr("times a power of two, up to 1024: "));
}

TEST_F(ScaledInputs, AreMadeSmallerWhereTheStartIsWrongOrTheReferenceOverflowsAtThatSize) {
  AskStart();
  const auto too_large = [](const v1::Plan& plan, const v1::InputDraw& draw) {
    return IsScaled(draw) && (plan.size() == "main" || plan.size() == "start") && draw.magnitude() > 10;
  };
  const auto wrong = [&](const v1::Plan& plan, const v1::InputDraw& draw) {
    return too_large(plan, draw) || (IsScaled(draw) && plan.size() == "main");
  };
  gpu_.wrong = wrong;
  EXPECT_THAT(Failure(InputVariety::kEverywhere), HasSubstr("times a power of two, up to 4: "));
  gpu_.overflows = too_large;
  EXPECT_THAT(Failure(InputVariety::kEverywhere), HasSubstr("times a power of two, up to 4: "));
}

TEST_F(ScaledInputs, AreMadeSmallerWhereTheReferenceOverflowsAndSoDoesTheCandidate) {
  gpu_.both_overflow = [](const v1::Plan& plan, const v1::InputDraw& draw) {
    return IsScaled(draw) && plan.size() == "main" && draw.magnitude() > 10;
  };
  EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
  EXPECT_EQ(CallsAt("main"), 3) << "with 1024, 64 and 4";
  EXPECT_EQ(CallsAt("small"), 1);
}

TEST_F(ScaledInputs, SayNothingAtALargeSizeWhereTheStartIsRightWithNone) {
  gpu_.wrong = [](const v1::Plan& plan, const v1::InputDraw& draw) {
    return IsScaled(draw) && (plan.size() == "main" || plan.size() == "start");
  };
  AskStart();
  EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
  options_.start = nullptr;
  EXPECT_EQ(Failure(InputVariety::kEverywhere), "") << "the start itself";
  gpu_.wrong = [](const v1::Plan& plan, const v1::InputDraw& draw) { return IsScaled(draw) && plan.size() == "small"; };
  EXPECT_NE(Failure(InputVariety::kEverywhere), "") << "where it was found to be right";
}

TEST_F(ScaledInputs, FailAKernelThatFaultsWithThemAtALargeSizeUnlessTheStartDoes) {
  AskStart();
  gpu_.failures["call main SCALED"].set_check(v1::CHECK_FAULT);
  EXPECT_THAT(Failure(InputVariety::kEverywhere), HasSubstr("times a power of two"));
  for (const v1::Check check : {v1::CHECK_FAULT, v1::CHECK_TIMEOUT}) {
    gpu_.failures["call start SCALED"].set_check(check);
    EXPECT_EQ(Failure(InputVariety::kEverywhere), "");
  }
}

TEST_F(ValidatorTest, FindsNothingWithAStartVariantThatIsWrongAnyway) {
  OpenRange();
  EXPECT_EQ(Failure(), "");
  gpu_.wrong = [](const v1::Plan&, const v1::InputDraw&) { return true; };
  const auto found = FindMagnitudes(gpu_, bundle_, built_, options_.small);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

}  // namespace
}  // namespace pawl
