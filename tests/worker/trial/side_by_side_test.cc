// Two variants compared without a campaign, without a GPU.
#include "worker/trial/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "tests/worker/trial/scripted_gpu.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::OutputError WrongOutput() {
  v1::OutputError error;
  error.set_wrong(10);
  error.set_first_wrong(-1);
  error.set_max_absolute(1);
  error.set_relative(1);
  return error;
}

class SideBySideTest : public testing::Test {
 protected:
  SideBySideTest() {
    base_.bundle = candidate_.bundle = std::make_shared<const v1::Bundle>(CopyBundle());
    (*base_.variant.mutable_values())["TILE"] = 32;
    (*candidate_.variant.mutable_values())["TILE"] = 64;
  }

  void Edit(const std::function<void(v1::Bundle&)>& edit) {
    v1::Bundle edited = *base_.bundle;
    edit(edited);
    candidate_.bundle = std::make_shared<const v1::Bundle>(std::move(edited));
    candidate_.variant = base_.variant;
  }
  void Faster() { gpu_.processes = {{.candidate_us = 180, .parent_us = 200}}; }

  SideBySide Compare(const std::vector<std::string>& sizes = {"main"}) {
    absl::StatusOr<SideBySide> compared = CompareSides(gpu_, base_, candidate_, sizes, observer_);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return compared.ok() ? *std::move(compared) : SideBySide();
  }
  // Of what the log says.
  long Count(const std::string& what) { return std::count(gpu_.log.begin(), gpu_.log.end(), what); }

  ScriptedGpu gpu_;
  ScriptedObserver observer_;
  ComparedSide base_, candidate_;
};

TEST_F(SideBySideTest, ConfirmsAFasterCandidateInASecondProcessAndChecksItAsOneThatIsKept) {
  Faster();
  const SideBySide compared = Compare();
  EXPECT_EQ(compared.device, "NVIDIA H200");
  EXPECT_FALSE(compared.base_failure || compared.candidate_failure);
  ASSERT_EQ(compared.sizes.size(), 1u);
  const ComparedSize& at = compared.sizes[0];
  EXPECT_EQ(at.size, "main");
  EXPECT_EQ(at.comparison.result(), v1::FASTER);
  EXPECT_EQ(at.comparison.processes(), 2);
  EXPECT_NEAR(std::exp(at.comparison.mean_log_ratio()), 200.0 / 180, 0.001);
  EXPECT_GT(at.comparison.lower(), 0.01);
  EXPECT_DOUBLE_EQ(at.base_us, 200);
  EXPECT_DOUBLE_EQ(at.candidate_us, 180);
  EXPECT_EQ(Overall(compared), v1::FASTER);
  EXPECT_THAT(gpu_.log, Contains("sanitize hidden hidden small"));
  EXPECT_EQ(Count("call main x20"), 2) << "of the base at first, of the candidate at last";
  EXPECT_THAT(gpu_.log, Contains("compare main 36"));
  EXPECT_THAT(gpu_.log, Not(Contains("baseline")));
}

TEST_F(SideBySideTest, ReadsTheCountersOfBothWhateverTheVerdict) {
  const SideBySide compared = Compare();
  EXPECT_EQ(Overall(compared), v1::UNCLEAR) << "one process does not exclude a gain of 1 %";
  ASSERT_EQ(compared.sizes.size(), 1u);
  EXPECT_EQ(compared.sizes[0].base.launches_size(), 1);
  EXPECT_EQ(compared.sizes[0].candidate.launches_size(), 1);
  EXPECT_EQ(Count("profile main"), 2);
  EXPECT_THAT(gpu_.log, Not(Contains("sanitize hidden hidden small"))) << "it would not be kept";
}

TEST_F(SideBySideTest, FindsASlowerCandidateSlower) {
  gpu_.processes = {{.candidate_us = 230, .parent_us = 200}};
  EXPECT_EQ(Overall(Compare()), v1::SLOWER);
}

TEST_F(SideBySideTest, TimesEachSizeThatIsAskedForAndValidatesAtAll) {
  Faster();
  const SideBySide compared = Compare({"small", "main"});
  ASSERT_EQ(compared.sizes.size(), 2u);
  EXPECT_EQ(compared.sizes[0].size, "small");
  EXPECT_EQ(compared.sizes[1].size, "main");
  EXPECT_EQ(Overall(compared), v1::FASTER);
  EXPECT_THAT(gpu_.log, Contains("compare small 12"));
  EXPECT_THAT(gpu_.log, Contains("compare main 12"));
  EXPECT_EQ(Count("profile small"), 2);
  EXPECT_EQ(Count("profile main"), 2);
}

TEST_F(SideBySideTest, TimesNothingWhereTheCandidateIsWrong) {
  gpu_.errors["check small"] = WrongOutput();
  const SideBySide compared = Compare();
  EXPECT_FALSE(compared.base_failure.has_value());
  ASSERT_TRUE(compared.candidate_failure.has_value());
  EXPECT_EQ(compared.candidate_failure->size(), "small");
  EXPECT_THAT(compared.sizes, IsEmpty());
  EXPECT_THAT(gpu_.log, Not(Contains(HasSubstr("compare"))));
}

TEST_F(SideBySideTest, DoesNotExamineTheCandidateWhereTheBaseIsWrong) {
  gpu_.errors["check small self-test"] = WrongOutput();
  const SideBySide compared = Compare();
  ASSERT_TRUE(compared.base_failure.has_value());
  EXPECT_EQ(compared.base_failure->check(), v1::CHECK_TOLERANCE);
  EXPECT_FALSE(compared.candidate_failure.has_value());
  EXPECT_THAT(gpu_.log, Not(Contains(HasSubstr("compare"))));
}

TEST_F(SideBySideTest, SaysWhatDoesNotBuild) {
  gpu_.builds["TILE=64"].mutable_failure()->set_check(v1::CHECK_COMPILE);
  gpu_.builds["TILE=64"].mutable_failure()->set_message("copy.cu(1): error");
  const SideBySide compared = Compare();
  ASSERT_TRUE(compared.candidate_failure.has_value());
  EXPECT_EQ(compared.candidate_failure->check(), v1::CHECK_COMPILE);
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(SideBySideTest, RunsNothingThatLeavesAResultInAnotherBufferThanTheBasesStart) {
  Edit([](v1::Bundle& bundle) { bundle = ExchangingBundle("1"); });
  const SideBySide compared = Compare();
  EXPECT_FALSE(compared.base_failure.has_value());
  ASSERT_TRUE(compared.candidate_failure.has_value());
  EXPECT_THAT(compared.candidate_failure->message(), HasSubstr("the result of out is left in the buffer of spare"));
  EXPECT_THAT(gpu_.log, IsEmpty());
}

TEST_F(SideBySideTest, ComparesEditedSourcesWithOtherScratchAndLaunches) {
  Faster();
  Edit([](v1::Bundle& bundle) {
    bundle.mutable_source()->set_text("extern \"C\" __global__ void two(float* buffer, const float* in) {}\n");
    v1::Tensor& buffer = *bundle.mutable_tensors()->Add();
    buffer.set_name("buffer");
    buffer.set_type(v1::DATA_TYPE_F32);
    buffer.add_shape("N");
    buffer.set_role(v1::TENSOR_ROLE_SCRATCH);
    bundle.mutable_tensors()->SwapElements(0, 2);
    bundle.mutable_launches(0)->set_entry("two");
    bundle.mutable_launches(0)->set_arguments(0, "buffer");
  });
  const SideBySide compared = Compare();
  EXPECT_FALSE(compared.candidate_failure.has_value()) << compared.candidate_failure->message();
  EXPECT_EQ(Overall(compared), v1::FASTER);
  EXPECT_EQ(compared.sizes[0].candidate.launches(0).entry(), "two");
}

TEST_F(SideBySideTest, DoesNotTimeTheSameMachineCode) {
  Edit([](v1::Bundle& bundle) { bundle.set_summary("other words"); });
  const SideBySide compared = Compare();
  EXPECT_EQ(Overall(compared), v1::SAME);
  EXPECT_THAT(compared.sizes[0].comparison.reason(), HasSubstr("the same machine code"));
  EXPECT_THAT(gpu_.log, Not(Contains(HasSubstr("compare"))));
}

TEST_F(SideBySideTest, IsUnclearOnAGpuThatIsUnsteady) {
  gpu_.processes = {{.unsteady = true, .disturbance = "clocks changed"}};
  const SideBySide compared = Compare();
  EXPECT_FALSE(compared.candidate_failure.has_value());
  EXPECT_EQ(Overall(compared), v1::UNCLEAR);
}

TEST_F(SideBySideTest, StopsWhenItIsToldTo) {
  gpu_.after = [&](const std::string& what) { observer_.stop = what == "compare main 12"; };
  const absl::StatusOr<SideBySide> compared = CompareSides(gpu_, base_, candidate_, {"main"}, observer_);
  EXPECT_TRUE(absl::IsCancelled(compared.status())) << compared.status();
}

TEST(Overall, IsSlowerBeforeItIsUnclearAndFasterOnlyWhereNothingSpeaksAgainstIt) {
  const auto of = [](std::vector<v1::ComparisonResult> results) {
    SideBySide compared;
    for (const v1::ComparisonResult result : results) compared.sizes.emplace_back().comparison.set_result(result);
    return Overall(compared);
  };
  EXPECT_EQ(of({v1::FASTER, v1::SAME}), v1::FASTER);
  EXPECT_EQ(of({v1::FASTER, v1::UNCLEAR}), v1::UNCLEAR);
  EXPECT_EQ(of({v1::FASTER, v1::UNCLEAR, v1::SLOWER}), v1::SLOWER);
  EXPECT_EQ(of({v1::SAME}), v1::SAME);
}

}  // namespace
}  // namespace pawl
