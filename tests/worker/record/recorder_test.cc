#include "worker/record/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RecorderTest : public testing::Test {
 protected:
  absl::StatusOr<Recording> Record() {
    RecordOptions options;
    options.output = folder_.path() / "copy.jsonl.gz";
    return Recorder(gpu_, bundle_, options)
        .Run([&](const RecordProgress& progress) { progress_ = progress; },
             [&](const std::string& line) { said_.push_back(line); });
  }

  const v1::RecordedVariant& Of(const Recording& recording, const std::string& variant) {
    for (const v1::RecordedVariant& record : recording.variants) {
      if (VariantText(record.variant()) == variant) return record;
    }
    ADD_FAILURE() << "no " << variant;
    return recording.variants.front();
  }

  v1::Bundle bundle_ = CopyBundle();
  const TemporaryFolder folder_{"pawl-recorder-test-"};
  ScriptedGpu gpu_;
  RecordProgress progress_;
  std::vector<std::string> said_;
};

TEST_F(RecorderTest, WritesARecordingOfEachSizeOfTheGoal) {
  (*bundle_.mutable_goal()->mutable_sizes())["small"] = 0.4;
  (*bundle_.mutable_goal()->mutable_sizes())["main"] = 0.6;
  gpu_.at_size["small"] = {.candidate_us = 10, .parent_us = 20};
  const absl::StatusOr<Recording> main = Record();
  ASSERT_TRUE(main.ok()) << main.status();
  const absl::StatusOr<Recording> small = ReadRecording(folder_.path() / "copy.small.jsonl.gz");
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(main->header.size(), "main");
  EXPECT_EQ(small->header.size(), "small");
  EXPECT_EQ(small->variants.size(), main->variants.size());
  EXPECT_EQ(Of(*main, "TILE=64").pairs_size(), 12);
  EXPECT_EQ(Of(*main, "TILE=64").warm_us(), 200);
  EXPECT_EQ(Of(*main, "TILE=64").pairs(0).size(), "") << "a recording has one size";
  EXPECT_EQ(Of(*small, "TILE=64").pairs_size(), 12);
  EXPECT_EQ(Of(*small, "TILE=64").warm_us(), 10);
  EXPECT_FALSE(Of(*small, "TILE=64").has_evidence()) << "the heaviest size is profiled";
  EXPECT_TRUE(Of(*small, "TILE=2048").has_failure()) << "wrong at one size is wrong";
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "copy.small.jsonl.gz.part"));
}

TEST_F(RecorderTest, MeasuresEveryVariantBesideTheStartThenProfilesThemInOneRun) {
  const absl::StatusOr<Recording> recording = Record();
  ASSERT_TRUE(recording.ok()) << recording.status();
  ASSERT_EQ(recording->variants.size(), 3u);
  for (const char* variant : {"TILE=32", "TILE=64"}) {
    const v1::RecordedVariant& record = Of(*recording, variant);
    EXPECT_FALSE(record.has_failure()) << variant;
    EXPECT_EQ(record.pairs_size(), 12) << variant;
    EXPECT_EQ(record.warm_us(), 200) << variant;
    EXPECT_EQ(record.cold_us(), 300) << variant;
    EXPECT_EQ(record.start_cold_us(), 300) << variant;
    EXPECT_EQ(record.errors_size(), 1) << variant;
    EXPECT_EQ(record.cubin_hash().size(), 16u) << variant;
    EXPECT_TRUE(record.has_evidence()) << variant;
    EXPECT_TRUE(record.stage_seconds().contains("measure")) << variant;
  }
  EXPECT_THAT(gpu_.log, Contains("profile main main").Times(1));
  EXPECT_THAT(gpu_.log, Not(Contains(HasSubstr("sanitize"))));
  EXPECT_EQ(recording->header.copy_gb_s(), 4000);
  EXPECT_EQ(recording->header.baseline_size(), 2);
  EXPECT_EQ(recording->header.toolchain().ncu(), "scripted");
  EXPECT_EQ(progress_.done, 3);
  EXPECT_EQ(progress_.failed, 1);
}

TEST_F(RecorderTest, RecordsWhyAVariantFailedWithoutTimes) {
  const absl::StatusOr<Recording> recording = Record();
  ASSERT_TRUE(recording.ok()) << recording.status();
  const v1::RecordedVariant& record = Of(*recording, "TILE=2048");
  EXPECT_EQ(record.failure().check(), v1::CHECK_LAUNCH_LIMITS);
  EXPECT_EQ(record.pairs_size(), 0);
  EXPECT_EQ(record.cubin_hash(), "");
  EXPECT_FALSE(record.has_evidence());
  EXPECT_FALSE(record.stage_seconds().contains("validate"));
  EXPECT_THAT(said_, Contains(HasSubstr("TILE=2048: CHECK_LAUNCH_LIMITS")));
}

TEST_F(RecorderTest, MeasuresNothingBesideAStartThatFails) {
  gpu_.lenient = {"zeros"};
  const absl::Status status = Record().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the start variant of copy fails (CHECK_LENIENT"));
  // A tolerance that is too lenient is so for a second draw, too.
  EXPECT_THAT(gpu_.log,
              ElementsAre("call hidden x20", "check hidden self-test", "call hidden x1", "check hidden self-test"));
}

TEST_F(RecorderTest, MeasuresNothingBesideAStartThatFailsWhenItIsTimed) {
  gpu_.wrong_when_timed = [](const v1::InputDraw&) { return true; };
  const absl::Status status = Record().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the start variant of copy fails (CHECK_TIMED_OUTPUT"));
  EXPECT_THAT(gpu_.log, Contains("compare main 12").Times(1)) << "no other variant was timed";
}

TEST_F(RecorderTest, GoesOnAfterAFaultOfTheMachineWithoutMeasuringAgain) {
  int compared = 0;
  gpu_.after = [&](const std::string& what) {
    if (what == "compare main 12" && ++compared == 2) gpu_.faults[what] = absl::InternalError("the GPU is lost");
  };
  EXPECT_EQ(std::string(Record().status().message()), "the GPU is lost");
  gpu_.faults.clear();
  gpu_.after = nullptr;
  gpu_.log.clear();
  const absl::StatusOr<Recording> recording = Record();
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->variants.size(), 3u);
  EXPECT_THAT(gpu_.log, Contains("compare main 12").Times(1)) << "the first variant was measured before";
  EXPECT_THAT(gpu_.log, Contains("profile main main").Times(1));
  EXPECT_THAT(gpu_.log, Not(Contains("baseline"))) << "the header is there";
}

TEST_F(RecorderTest, RecordsNoTimesOfAnUnsteadyGpu) {
  gpu_.processes = {{.unsteady = true}};
  const absl::StatusOr<Recording> recording = Record();
  ASSERT_TRUE(recording.ok()) << recording.status();
  const v1::RecordedVariant& record = Of(*recording, "TILE=64");
  EXPECT_EQ(record.failure().check(), v1::CHECK_UNSTEADY);
  EXPECT_EQ(record.discarded(), 10);
  EXPECT_EQ(record.pairs_size(), 0);
  EXPECT_EQ(record.warm_us(), 0);
}

}  // namespace
}  // namespace pawl
