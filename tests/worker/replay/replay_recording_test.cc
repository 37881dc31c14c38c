#include "worker/replay/replay_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "profiles/gpus.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::Variant Tile(int tile) {
  v1::Variant variant;
  (*variant.mutable_values())["TILE"] = tile;
  return variant;
}

// So many times as fast as what it was measured beside.
v1::RecordedVariant Measured(int tile, double speedup) {
  v1::RecordedVariant record;
  *record.mutable_variant() = Tile(tile);
  for (const double noise : {-0.001, 0.0, 0.001}) record.add_pairs()->set_log_ratio(std::log(speedup) + noise);
  record.set_warm_us(7);  // of another hour: not to be gone by
  record.set_start_cold_us(50);
  return record;
}

v1::RecordedVariant Measured(int tile, double speedup, int beside) {
  v1::RecordedVariant record = Measured(tile, speedup);
  *record.mutable_beside() = Tile(beside);
  return record;
}

// TILE=1 is the start: 100 us warm and 200 us cold.
Recording RecordingOf(const std::vector<v1::RecordedVariant>& variants) {
  Recording recording;
  recording.header.set_bundle("scale_rows");
  *recording.header.mutable_start() = Tile(1);
  for (const v1::RecordedVariant& variant : variants) recording.Put(variant);
  v1::RecordedVariant start = Measured(1, 1.1);  // the start is as fast as itself, whatever its pairs say
  start.set_warm_us(100);
  start.set_cold_us(200);
  recording.Put(start);
  return recording;
}

double Speedup(const ReplayRecording& replay, int tile) { return std::exp(replay.Find(Tile(tile))->log_ratio); }

TEST(ReplayRecording, MultipliesTheRatiosOfAChainInAnyOrder) {
  v1::RecordedVariant last = Measured(8, 1.5, 4);
  last.set_cold_us(25);
  const ReplayRecording replay(
      RecordingOf({last, Measured(16, 0.5, 8), Measured(4, 3, 2), Measured(2, 2), Measured(32, 4, 1)}));
  EXPECT_NEAR(Speedup(replay, 1), 1, 1e-12);
  EXPECT_NEAR(Speedup(replay, 2), 2, 1e-9);
  EXPECT_NEAR(Speedup(replay, 4), 6, 1e-9);
  EXPECT_NEAR(Speedup(replay, 8), 9, 1e-9);
  EXPECT_NEAR(Speedup(replay, 16), 4.5, 1e-9);
  EXPECT_NEAR(Speedup(replay, 32), 4, 1e-9);  // the start may be named

  const ReplayedVariant &candidate = *replay.Find(Tile(8)), &parent = *replay.Find(Tile(2));
  EXPECT_NEAR(replay.WarmUs(candidate, v1::TIMING_MODE_WARM), 100 / 9.0, 1e-6);
  EXPECT_NEAR(replay.ColdUs(candidate, v1::TIMING_MODE_WARM), 200 * 25 / 50.0, 1e-6);
  EXPECT_NEAR(replay.ColdUs(candidate, v1::TIMING_MODE_COLD), 200 / 9.0, 1e-6);
  const Timing timing = replay.Pairs(candidate, parent, v1::TIMING_MODE_WARM, 7, {.seed = 1});
  ASSERT_EQ(timing.times.pairs_size(), 7);
  for (const v1::PairSample& pair : timing.times.pairs()) EXPECT_NEAR(pair.log_ratio(), std::log(4.5), 0.03);
}

TEST(ReplayRecording, GivesEachProcessAnEffectOfItsOwnAndAllTheSameAnchor) {
  Recording recording = RecordingOf({Measured(2, 2)});
  recording.header.mutable_gpu()->set_name("NVIDIA H200");
  const ReplayRecording replay(recording);
  const ReplayedVariant &candidate = *replay.Find(Tile(2)), &parent = *replay.Find(Tile(1));
  const auto mean = [&](const ReplayedProcess& process) {
    const Timing timing = replay.Pairs(candidate, parent, v1::TIMING_MODE_WARM, 500, process);
    double sum = 0;
    for (const v1::PairSample& pair : timing.times.pairs()) sum += pair.log_ratio() / 500;
    EXPECT_EQ(timing.times.pairs(0).anchor_us(), timing.times.pairs(499).anchor_us());
    return sum;
  };
  double squares = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const double effect = mean({.seed = 1000 * seed}) - std::log(2);
    EXPECT_NEAR(mean({.seed = 1000 * seed, .pairs_before = 12}) - std::log(2), effect, 0.0005) << "the same process";
    squares += effect * effect / 200;
  }
  EXPECT_NEAR(squares, NoiseOf("h200").variance(), 0.3 * NoiseOf("h200").variance());
}

TEST(ReplayRecording, GoesByADirectComparisonWithTheStartWhereThereIsOne) {
  v1::RecordedVariant best = Measured(4, 1.5, 2);
  best.mutable_beside_start()->set_mean_log_ratio(std::log(2.8));
  const ReplayRecording replay(RecordingOf({Measured(2, 2), best}));
  EXPECT_NEAR(Speedup(replay, 4), 3, 1e-9) << "beside other variants it is what the steps say";
  EXPECT_NEAR(std::exp(replay.FindBesideStart(Tile(4))->log_ratio), 2.8, 1e-9);
  EXPECT_NEAR(replay.WarmUs(*replay.FindBesideStart(Tile(4)), v1::TIMING_MODE_WARM), 100 / 2.8, 1e-6);
  EXPECT_EQ(replay.FindBesideStart(Tile(2)), replay.Find(Tile(2)));
  EXPECT_EQ(replay.FindBesideStart(Tile(64)), nullptr);
}

class ChainFile : public testing::Test {
 protected:
  std::string Refusal(const std::vector<v1::RecordedVariant>& variants) const {
    const Recording recording = RecordingOf(variants);
    EXPECT_TRUE(WriteRecording(file_, recording).ok());
    const absl::Status status = ReadRecording(file_).status();
    EXPECT_EQ(status.code(), variants.empty() ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
    const ReplayRecording unread(recording);  // serves what has a time, and lives
    EXPECT_NE(unread.Find(Tile(1)), nullptr);
    EXPECT_EQ(unread.Find(Tile(2)), nullptr);
    return std::string(status.message());
  }

  const TemporaryFolder folder_{"pawl-chain-test-"};
  const std::filesystem::path file_ = folder_.path() / "some.jsonl.gz";
};

TEST_F(ChainFile, IsRefusedWhereAVariantWasMeasuredBesideWhatItLacks) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_THAT(Refusal({Measured(4, 2, 2), Measured(2, 2, 64)}),
              AllOf(HasSubstr(file_.string()), HasSubstr("TILE=2 was measured beside TILE=64, which is not in"),
                    HasSubstr("`pawl record`")));
}

TEST_F(ChainFile, IsRefusedWhereAVariantWasMeasuredBesideOneThatFailed) {
  v1::RecordedVariant failed = Measured(64, 2);
  failed.mutable_failure()->set_check(v1::CHECK_TOLERANCE);
  EXPECT_THAT(Refusal({failed, Measured(2, 2, 64)}), HasSubstr("TILE=2 was measured beside TILE=64, which failed"));
}

TEST_F(ChainFile, IsRefusedWhereVariantsWereMeasuredBesideEachOther) {
  EXPECT_THAT(Refusal({Measured(2, 2, 2)}), HasSubstr("TILE=2 was measured beside TILE=2, which was itself"));
  EXPECT_THAT(Refusal({Measured(2, 2, 4), Measured(4, 2, 8), Measured(8, 2, 2)}),
              HasSubstr("TILE=8 was measured beside TILE=2, which was itself"));
}

TEST_F(ChainFile, MayBeAsLongAsItLikes) {
  std::vector<v1::RecordedVariant> variants;
  for (int tile = 20'000; tile > 1; --tile) variants.push_back(Measured(tile, 1, tile - 1));
  const ReplayRecording replay(RecordingOf(variants));
  EXPECT_NEAR(Speedup(replay, 20'000), 1, 1e-6);
}

}  // namespace
}  // namespace pawl
