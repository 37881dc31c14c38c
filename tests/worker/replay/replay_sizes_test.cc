// A goal over several sizes replays from a recording of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "worker/process/temporary_folder.h"
#include "worker/replay/replay_device.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

class NobodyWatches : public TrialObserver {
 public:
  void Report(v1::Stage, int, int, const std::string&) override {}
  bool stopped() const override { return false; }
};

std::filesystem::path InSource(const std::string& path) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / path;
}

// Transpose at main as it was recorded, and the same file as if it were of another size, where every variant gains
// twice as much (in logarithms).
class ReplaySizesTest : public testing::Test {
 protected:
  ReplaySizesTest() {
    BundleReading reading = ReadBundle(InSource("kernels/transpose"));
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    bundle_ = std::move(reading.bundle);
    recording_ = ReadRecording(InSource("profiles/recordings/transpose.h200.jsonl.gz")).value();
    main_ = recording_.header.size();
    for (const v1::Size& size : bundle_.sizes()) {
      if (size.name() != main_) other_ = size.name();
    }
    (*bundle_.mutable_goal()->mutable_sizes())[main_] = 0.5;
    (*bundle_.mutable_goal()->mutable_sizes())[other_] = 0.5;
    bundle_.mutable_goal()->set_size(main_);
  }

  void Write(bool both) {
    ASSERT_TRUE(WriteRecording(folder_.path() / "main.jsonl.gz", recording_).ok());
    if (!both) return;
    Recording other = recording_;
    other.header.set_size(other_);
    for (v1::RecordedVariant& variant : other.variants) {
      for (v1::PairSample& pair : *variant.mutable_pairs()) pair.set_log_ratio(2 * pair.log_ratio());
    }
    ASSERT_TRUE(WriteRecording(folder_.path() / "other.jsonl.gz", other).ok());
  }

  v1::TrialResult Answer(const v1::Variant& variant, v1::TrialPurpose purpose = v1::TRIAL_PURPOSE_ITERATION) {
    absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open({{folder_.path()}});
    EXPECT_TRUE(device.ok()) << device.status();
    v1::Trial trial;
    *trial.mutable_variant() = variant;
    *trial.mutable_parent() = recording_.header.start();
    trial.set_size(main_);
    trial.set_seed(5);
    trial.set_purpose(purpose);
    *trial.mutable_noise() = NoiseOf("h200");
    NobodyWatches nobody;
    auto prepared = (*device)->Prepare(trial, std::make_shared<const v1::Bundle>(bundle_), nobody);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    absl::StatusOr<TrialOutcome> outcome = (*device)->Run(**prepared, nobody);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome->result;
  }

  static double MeanAt(const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs, const std::string& size) {
    double sum = 0;
    int count = 0;
    for (const v1::PairSample& pair : pairs) {
      if (pair.size() != size) continue;
      sum += pair.log_ratio();
      ++count;
    }
    return count == 0 ? NAN : sum / count;
  }

  // One that is clearly faster than the start.
  const v1::RecordedVariant& Faster() const {
    for (const v1::RecordedVariant& variant : recording_.variants) {
      if (variant.has_failure() || variant.has_beside() || variant.pairs().empty()) continue;
      double sum = 0;
      for (const v1::PairSample& pair : variant.pairs()) sum += pair.log_ratio();
      if (sum / variant.pairs_size() > 0.2) return variant;
    }
    ADD_FAILURE() << "nothing is faster";
    return recording_.variants[0];
  }

  v1::Bundle bundle_;
  Recording recording_;
  std::string main_, other_;
  const TemporaryFolder folder_{"pawl-replay-sizes-"};
};

TEST_F(ReplaySizesTest, AnswersEachSizeFromItsOwnRecording) {
  Write(/*both=*/true);
  const v1::TrialResult result = Answer(Faster().variant());
  ASSERT_EQ(result.passed_over(), "");
  const double main = MeanAt(result.pairs(), main_), other = MeanAt(result.pairs(), other_);
  EXPECT_GT(main, 0.1);
  EXPECT_NEAR(other, 2 * main, 0.05);
  EXPECT_FALSE(std::isnan(MeanAt(result.confirming_pairs(), other_))) << "confirmed at every size";
  EXPECT_TRUE(result.profiled());
}

TEST_F(ReplaySizesTest, SaysWhichRecordingIsMissing) {
  Write(/*both=*/false);
  const v1::TrialResult result = Answer(Faster().variant());
  EXPECT_THAT(result.passed_over(), HasSubstr("there is no recording of this version of transpose at size " + other_));
}

TEST_F(ReplaySizesTest, PassesOverWhatOneOfTheRecordingsLacks) {
  Write(/*both=*/true);
  Recording other = ReadRecording(folder_.path() / "other.jsonl.gz").value();
  const std::string text = VariantText(Faster().variant());
  std::erase_if(other.variants, [&](const v1::RecordedVariant& one) {
    return VariantText(one.variant()) == text || (one.has_beside() && VariantText(one.beside()) == text);
  });
  Recording without;
  without.header = other.header;
  for (const v1::RecordedVariant& variant : other.variants) without.Put(variant);
  ASSERT_TRUE(WriteRecording(folder_.path() / "other.jsonl.gz", without).ok());
  EXPECT_THAT(Answer(Faster().variant()).passed_over(), HasSubstr("not in the recording of transpose at " + other_));
}

TEST_F(ReplaySizesTest, ListsEverySizeThatHasARecordingAtTheEnd) {
  Write(/*both=*/true);
  bundle_.mutable_goal()->clear_sizes();
  const v1::TrialResult result = Answer(Faster().variant(), v1::TRIAL_PURPOSE_TOTAL);
  ASSERT_EQ(result.sizes_size(), 2);
  for (const v1::SizeTime& size : result.sizes()) EXPECT_GT(size.start_us() / size.best_us(), 1.1) << size.size();
}

}  // namespace
}  // namespace pawl
