#include "worker/replay/replay_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "absl/time/clock.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"
#include "tests/instrumented.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::filesystem::path Source(const std::string& path) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / path;
}

class Watcher : public TrialObserver {
 public:
  void Report(v1::Stage stage, int, int, const std::string&) override { stages.push_back(stage); }
  bool stopped() const override { return stop; }

  std::vector<v1::Stage> stages;
  bool stop = false;
};

std::shared_ptr<const v1::Bundle> Bundle(const std::string& name) {
  BundleReading reading = ReadBundle(Source("kernels/" + name));
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  return std::make_shared<const v1::Bundle>(std::move(reading.bundle));
}

v1::Trial TrialOf(const v1::Variant& variant, const v1::Variant* parent, uint64_t seed = 1) {
  v1::Trial trial;
  *trial.mutable_variant() = variant;
  if (parent != nullptr) *trial.mutable_parent() = *parent;
  trial.set_size("main");
  trial.set_seed(seed);
  *trial.mutable_noise() = NoiseOf("h200");
  return trial;
}

absl::StatusOr<TrialOutcome> Answer(ReplayDevice& device, const v1::Trial& trial,
                                    std::shared_ptr<const v1::Bundle> bundle, Watcher* watcher = nullptr) {
  Watcher nobody;
  if (watcher == nullptr) watcher = &nobody;
  absl::StatusOr<std::unique_ptr<PreparedTrial>> prepared = device.Prepare(trial, std::move(bundle), *watcher);
  if (!prepared.ok()) return prepared.status();
  return device.Run(**prepared, *watcher);
}

v1::TrialResult Result(ReplayDevice& device, const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle) {
  absl::StatusOr<TrialOutcome> outcome = Answer(device, trial, std::move(bundle));
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome->result;
}

double MeanLogRatio(const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs) {
  double sum = 0;
  for (const v1::PairSample& pair : pairs) sum += pair.log_ratio();
  return sum / pairs.size();
}

v1::ComparisonResult Judged(const v1::TrialResult& result) {
  std::map<int, PairBatch> by_process;
  for (const auto* pairs : {&result.pairs(), &result.confirming_pairs()}) {
    for (const v1::PairSample& pair : *pairs) by_process[pair.process()].log_ratios.push_back(pair.log_ratio());
  }
  std::vector<PairBatch> processes;
  for (auto& [process, batch] : by_process) processes.push_back(std::move(batch));
  return Compare(processes, NoiseOf("h200"), KeepRule()).result();
}

// Over the recordings that ship.
class ShippedReplay : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<ReplayDevice>> opened = ReplayDevice::Open({{Source("profiles/recordings")}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
    bundle_ = Bundle("attention");
    recording_ = ReadRecording(Source("profiles/recordings/attention.h200.jsonl.gz")).value();
  }
  static void TearDownTestSuite() { device_.reset(); }
  // Over the start, by way of what it was measured beside.
  static double LogSpeedup(const v1::RecordedVariant& record) {
    double sum = MeanLogRatio(record.pairs());
    for (const v1::RecordedVariant& other : recording_.variants) {
      if (record.has_beside() && VariantText(other.variant()) == VariantText(record.beside())) sum += LogSpeedup(other);
    }
    return sum;
  }
  static const v1::RecordedVariant& At(size_t place) { return recording_.variants[place % recording_.variants.size()]; }

  inline static std::unique_ptr<ReplayDevice> device_;
  inline static std::shared_ptr<const v1::Bundle> bundle_;
  inline static Recording recording_;
};

TEST_F(ShippedReplay, SaysThatItIsAReplay) {
  const std::string day = recording_.header.date().substr(0, 10);
  EXPECT_EQ(device_->device().kind(), v1::DEVICE_KIND_REPLAY);
  EXPECT_THAT(device_->device().label(), AllOf(StartsWith("replay of an NVIDIA H200, recorded on "), HasSubstr(day)));
  EXPECT_EQ(device_->device().gpu().name(), "NVIDIA H200");
  const std::filesystem::directory_iterator recordings(Source("profiles/recordings"));
  EXPECT_EQ(device_->device().bundle_hashes_size(), std::distance(begin(recordings), end(recordings)));
  EXPECT_TRUE(device_->device().counters());
  const v1::TrialResult result = Result(*device_, TrialOf(At(0).variant(), nullptr), bundle_);
  EXPECT_EQ(result.device(), "replay of an NVIDIA H200, recorded on " + day);
}

TEST_F(ShippedReplay, GivesAnyTwoVariantsTheRatioOfTheirRecordedRatiosToTheStart) {
  for (size_t i = 1; i < 300; i += 7) {
    const v1::RecordedVariant &candidate = At(5 * i), &parent = At(3 * i + 1);
    const v1::TrialResult result = Result(*device_, TrialOf(candidate.variant(), &parent.variant(), i), bundle_);
    ASSERT_EQ(result.passed_over(), "");
    const double expected = LogSpeedup(candidate) - LogSpeedup(parent);
    EXPECT_NEAR(MeanLogRatio(result.pairs()), expected, 0.01) << VariantText(candidate.variant());
    EXPECT_NEAR(std::log(result.parent_warm_us() / result.warm_us()), expected, 0.01);
    if (std::abs(expected) < 0.05) continue;
    EXPECT_EQ(Judged(result), expected > 0 ? v1::FASTER : v1::SLOWER) << VariantText(candidate.variant());
  }
}

TEST_F(ShippedReplay, TimesHangTogetherOverSeveralTrials) {
  const v1::TrialResult start = Result(*device_, TrialOf(At(0).variant(), nullptr), bundle_);
  const v1::TrialResult first = Result(*device_, TrialOf(At(7).variant(), &At(0).variant()), bundle_);
  const v1::TrialResult second = Result(*device_, TrialOf(At(20).variant(), &At(7).variant()), bundle_);
  EXPECT_NEAR(first.parent_warm_us() / start.warm_us(), 1, 0.01);
  EXPECT_NEAR(second.parent_warm_us() / first.warm_us(), 1, 0.01);
  EXPECT_NEAR(start.warm_us() / At(0).warm_us(), 1, 0.01);
}

TEST_F(ShippedReplay, FindsTheStartNoFasterThanItself) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const v1::TrialResult result = Result(*device_, TrialOf(At(0).variant(), &At(0).variant(), seed), bundle_);
    EXPECT_NE(Judged(result), v1::FASTER);
    EXPECT_NE(Judged(result), v1::SLOWER);
  }
}

TEST_F(ShippedReplay, ConfirmsAndProfilesOnlyWhatIsFaster) {
  int faster = 0, others = 0;
  for (size_t i = 1; i < 60; ++i) {
    const v1::TrialResult result = Result(*device_, TrialOf(At(i).variant(), &At(3 * i + 1).variant()), bundle_);
    const bool is_faster = Judged(result) == v1::FASTER && result.confirming_pairs_size() > 0 && result.profiled();
    (is_faster ? faster : others) += 1;
    ASSERT_GT(result.evidence().launches_size(), 0);
    const v1::LaunchEvidence& launch = result.evidence().launches(0);
    EXPECT_GT(launch.metrics().at("grid_size"), 0);
    EXPECT_GT(launch.resources().registers(), 0);
    EXPECT_EQ(launch.metrics().contains("dram_throughput"), is_faster) << "a counter";
    EXPECT_EQ(result.evidence().partial(), !is_faster);
    EXPECT_EQ(launch.advice().empty(), !is_faster);
  }
  EXPECT_GT(faster, 5);
  EXPECT_GT(others, 5);
}

TEST_F(ShippedReplay, ProvesTheStartVariantAlone) {
  const v1::TrialResult result = Result(*device_, TrialOf(At(0).variant(), nullptr), bundle_);
  EXPECT_FALSE(result.has_failure());
  EXPECT_TRUE(result.profiled());
  EXPECT_GT(result.evidence().launches(0).metrics().at("duration_ns"), 0);
  EXPECT_EQ(result.baselines_size(), recording_.header.baseline_size());
  EXPECT_GT(result.baselines_size(), 0);
  EXPECT_GT(result.copy_gb_s(), 0);
  EXPECT_EQ(result.cubin_hash(), At(0).cubin_hash());
  EXPECT_GT(result.errors_size(), 0);
  EXPECT_GT(result.cold_us(), result.warm_us());
  EXPECT_EQ(result.gpu().uuid(), recording_.header.gpu().uuid());
  EXPECT_EQ(result.toolchain().nvcc(), recording_.header.toolchain().nvcc());
  EXPECT_THAT(result.build(), AllOf(StartsWith("nvcc -cubin -arch=sm_90a "), HasSubstr("-DTILE_M=64")));
  EXPECT_THAT(result.notes(), HasSubstr("compute-sanitizer"));
  ASSERT_EQ(result.stages_size(), 4);
  EXPECT_EQ(result.stages(0).stage(), v1::STAGE_BUILD);
  EXPECT_EQ(result.stages(0).seconds(), At(0).stage_seconds().at("build"));
}

TEST_F(ShippedReplay, GivesTheSameTrialTheSameAnswer) {
  const v1::Trial trial = TrialOf(At(9).variant(), &At(3).variant(), 77);
  absl::StatusOr<std::unique_ptr<ReplayDevice>> other = ReplayDevice::Open({{Source("profiles/recordings")}});
  ASSERT_TRUE(other.ok());
  const v1::TrialResult first = Result(*device_, trial, bundle_), again = Result(**other, trial, bundle_);
  EXPECT_EQ(first.DebugString(), again.DebugString());
  const v1::TrialResult seeded = Result(*device_, TrialOf(At(9).variant(), &At(3).variant(), 78), bundle_);
  EXPECT_NE(first.pairs(0).log_ratio(), seeded.pairs(0).log_ratio());
}

TEST_F(ShippedReplay, PassesOverWhatIsNotRecorded) {
  v1::Variant unknown = At(0).variant();
  (*unknown.mutable_values())["TILE_M"] = 48;
  EXPECT_THAT(Result(*device_, TrialOf(unknown, &At(0).variant()), bundle_).passed_over(),
              AllOf(StartsWith("not in the recording of attention"), HasSubstr("TILE_M=48")));
  EXPECT_THAT(Result(*device_, TrialOf(At(0).variant(), &unknown), bundle_).passed_over(), HasSubstr("the parent"));
  v1::Trial edited = TrialOf(At(1).variant(), &At(0).variant());
  edited.set_patched_source("extern \"C\" __global__ void other() {}");
  EXPECT_THAT(Result(*device_, edited, bundle_).passed_over(), HasSubstr("a source edit"));
  v1::Trial sized = TrialOf(At(1).variant(), &At(0).variant());
  sized.set_size("large");
  EXPECT_THAT(Result(*device_, sized, bundle_).passed_over(), HasSubstr("at size large"));
}

TEST_F(ShippedReplay, PassesOverABundleThatWasChangedSinceItWasRecorded) {
  auto changed = std::make_shared<v1::Bundle>(*bundle_);
  changed->mutable_source()->mutable_text()->append("\n");
  v1::Trial trial = TrialOf(At(0).variant(), nullptr);
  trial.set_bundle_hash("changed");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Result(*device_, trial, changed).passed_over(), HasSubstr("no recording of this version of attention"));
  }
  trial.set_bundle_hash("as it was");
  EXPECT_EQ(Result(*device_, trial, bundle_).passed_over(), "");
}

TEST_F(ShippedReplay, OpensQuickly) {
  const absl::Time start = absl::Now();
  ASSERT_TRUE(ReplayDevice::Open({{Source("profiles/recordings")}}).ok());
  EXPECT_LT(absl::Now() - start, kSlowdown * absl::Seconds(2));
}

TEST_F(ShippedReplay, SleepsThroughRecordedStagesAndStopsWhenTold) {
  absl::StatusOr<std::unique_ptr<ReplayDevice>> slow = ReplayDevice::Open({{Source("profiles/recordings")}, 100});
  ASSERT_TRUE(slow.ok());
  Watcher watcher;
  const absl::Time start = absl::Now();
  ASSERT_TRUE(Answer(**slow, TrialOf(At(0).variant(), nullptr), bundle_, &watcher).ok());
  double seconds = 0;
  for (const auto& [stage, recorded] : At(0).stage_seconds()) seconds += recorded;
  EXPECT_GE(absl::ToDoubleSeconds(absl::Now() - start), seconds / 100);
  EXPECT_EQ(watcher.stages,
            (std::vector<v1::Stage>{v1::STAGE_BUILD, v1::STAGE_VALIDATE, v1::STAGE_MEASURE, v1::STAGE_PROFILE}));
  absl::StatusOr<std::unique_ptr<ReplayDevice>> endless = ReplayDevice::Open({{Source("profiles/recordings")}, 1e-6});
  ASSERT_TRUE(endless.ok());
  watcher.stop = true;
  EXPECT_TRUE(absl::IsCancelled(Answer(**endless, TrialOf(At(0).variant(), nullptr), bundle_, &watcher).status()));
}

// Over recordings made up here, of a bundle with one variable.
class MadeUpReplay : public testing::Test {
 protected:
  MadeUpReplay() {
    bundle_.set_name("made_up");
    v1::Variable* variable = bundle_.add_variables();
    variable->set_name("X");
    for (int x : {1, 2, 3, 4}) variable->add_values(x);
    variable->set_start(1);
    v1::Size* size = bundle_.add_sizes();
    size->set_name("main");
    bundle_.mutable_source()->set_path("made_up.cu");
  }
  v1::Variant At(int x) const {
    v1::Variant variant;
    (*variant.mutable_values())["X"] = x;
    return variant;
  }
  // X = 1 takes 10 us warm and 30 us cold, 2 half of it, 3 fails; 4 is not there.
  Recording Make(const std::string& gpu, const std::string& date) const {
    Recording recording;
    recording.header.set_bundle("made_up");
    recording.header.set_bundle_hash(BundleHash(bundle_));
    recording.header.set_size("main");
    recording.header.set_date(date);
    recording.header.mutable_gpu()->set_name(gpu);
    *recording.header.mutable_start() = At(1);
    for (int x : {1, 2, 3}) {
      v1::RecordedVariant record;
      *record.mutable_variant() = At(x);
      (*record.mutable_stage_seconds())["build"] = 0.5;
      if (x == 3) {
        record.mutable_failure()->set_check(v1::CHECK_TOLERANCE);
        record.mutable_failure()->set_stage(v1::STAGE_VALIDATE);
        record.mutable_failure()->set_message("out[0] is 1, expected 2");
      } else {
        for (int i = 0; i < 7; ++i) {
          record.add_pairs()->set_log_ratio((x == 2 ? std::log(2.0) : 0) + (i - 3) * 1e-4);
        }
        // This variant was measured when the GPU was 5 % slower.
        record.set_warm_us(x == 1 ? 10 : 5.25);
        record.set_cold_us(x == 1 ? 30 : 15.75);
        record.set_start_cold_us(x == 1 ? 30 : 31.5);
      }
      recording.Put(record);
    }
    return recording;
  }
  void Write(const std::string& name, const Recording& recording) {
    ASSERT_TRUE(WriteRecording(folder_.path() / name, recording).ok());
  }
  std::unique_ptr<ReplayDevice> Open() {
    absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open({{folder_.path()}});
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? *std::move(device) : nullptr;
  }
  std::shared_ptr<const v1::Bundle> Shared() const { return std::make_shared<const v1::Bundle>(bundle_); }

  const TemporaryFolder folder_{"pawl-replay-test-"};
  v1::Bundle bundle_;
};

TEST_F(MadeUpReplay, TakesAbsoluteTimesFromRatios) {
  Write("a.jsonl.gz", Make("NVIDIA H200", "2026-11-15T04:22:04Z"));
  const std::unique_ptr<ReplayDevice> device = Open();
  const v1::Variant start = At(1);
  const v1::TrialResult result = Result(*device, TrialOf(At(2), &start), Shared());
  EXPECT_NEAR(result.warm_us(), 5, 0.01);
  EXPECT_NEAR(result.cold_us(), 15, 0.01);
  EXPECT_NEAR(result.parent_warm_us(), 10, 0.01);
  EXPECT_NEAR(result.parent_cold_us(), 30, 0.01);
  EXPECT_FALSE(result.profiled()) << "a recording may lack evidence";

  bundle_.set_timing(v1::TIMING_MODE_COLD);
  Write("a.jsonl.gz", Make("NVIDIA H200", "2026-11-15T04:22:04Z"));
  const v1::TrialResult cold = Result(*Open(), TrialOf(At(2), &start), Shared());
  EXPECT_NEAR(cold.cold_us(), 15, 0.01);
  EXPECT_NEAR(cold.parent_cold_us(), 30, 0.01);
  EXPECT_NEAR(cold.pairs(0).candidate_us(), 15, 0.05) << "pairs are of the mode that decides";
}

TEST_F(MadeUpReplay, AnswersATotalWithWhatWasMeasuredOfIt) {
  Recording recording = Make("NVIDIA H200", "2026-11-15T04:22:04Z");
  v1::RecordedVariant& best = recording.variants[1];
  best.mutable_beside_start()->set_mean_log_ratio(std::log(1.8));
  best.mutable_beside_baseline()->set_baseline_us(12);
  best.mutable_beside_baseline()->add_log_ratios(0.8);
  Write("a.jsonl.gz", recording);
  const v1::Variant start = At(1);
  v1::Trial trial = TrialOf(At(2), &start);
  const v1::TrialResult iteration = Result(*Open(), trial, Shared());
  EXPECT_NEAR(iteration.pairs(0).log_ratio(), std::log(2), 0.01);
  EXPECT_FALSE(iteration.has_beside_baseline());
  trial.set_purpose(v1::TRIAL_PURPOSE_TOTAL);
  const v1::TrialResult total = Result(*Open(), trial, Shared());
  EXPECT_NEAR(total.pairs(0).log_ratio(), std::log(1.8), 0.01);
  EXPECT_EQ(total.beside_baseline().baseline_us(), 12);
  EXPECT_EQ(total.beside_baseline().log_ratios_size(), 1);
}

TEST_F(MadeUpReplay, GivesARecordedFailureBack) {
  Write("a.jsonl.gz", Make("NVIDIA H200", "2026-11-15T04:22:04Z"));
  const v1::Variant start = At(1);
  const v1::TrialResult result = Result(*Open(), TrialOf(At(3), &start), Shared());
  EXPECT_EQ(result.failure().check(), v1::CHECK_TOLERANCE);
  EXPECT_EQ(result.failure().message(), "out[0] is 1, expected 2");
  EXPECT_EQ(result.pairs_size(), 0);
  ASSERT_EQ(result.stages_size(), 1);
  EXPECT_EQ(result.stages(0).seconds(), 0.5);
  const v1::Variant failed = At(3);
  EXPECT_THAT(Result(*Open(), TrialOf(At(2), &failed), Shared()).passed_over(), HasSubstr("times of the parent X=3"));
}

TEST_F(MadeUpReplay, ServesTheNewestRecordingOfABundleAndTheGpuThatMostAreOf) {
  Recording other = Make("NVIDIA H200", "2026-11-17T00:00:00Z");
  other.header.set_bundle_hash("another bundle");
  Write("a.jsonl.gz", Make("NVIDIA H200", "2026-11-15T04:22:04Z"));
  Write("b.jsonl.gz", Make("NVIDIA H200", "2026-11-16T00:00:00Z"));
  Write("c.jsonl.gz", Make("NVIDIA L4", "2026-11-18T00:00:00Z"));
  Write("d.jsonl.gz", other);
  const std::unique_ptr<ReplayDevice> device = Open();
  EXPECT_EQ(device->device().label(), "replay of an NVIDIA H200, recorded on 2026-11-16 to 2026-11-17");
  EXPECT_THAT(device->left_out(),
              testing::UnorderedElementsAre(AllOf(HasSubstr("a.jsonl.gz"), HasSubstr("newer")),
                                            AllOf(HasSubstr("c.jsonl.gz"), HasSubstr("NVIDIA L4"))));
  EXPECT_EQ(Result(*device, TrialOf(At(1), nullptr), Shared()).device(),
            "replay of an NVIDIA H200, recorded on 2026-11-16");
}

TEST_F(MadeUpReplay, SaysThatThereAreNoRecordings) {
  EXPECT_TRUE(absl::IsNotFound(ReplayDevice::Open({{folder_.path()}}).status()));
  EXPECT_TRUE(absl::IsNotFound(ReplayDevice::Open({}).status()));
  EXPECT_FALSE(ReplayDevice::Open({{folder_.path() / "none.jsonl.gz"}}).ok());
}

TEST(WithArticle, FollowsTheSound) {
  EXPECT_EQ(WithArticle("NVIDIA H200"), "an NVIDIA H200");
  EXPECT_EQ(WithArticle("H200"), "an H200");
  EXPECT_EQ(WithArticle("L4"), "an L4");
  EXPECT_EQ(WithArticle("T4"), "a T4");
  EXPECT_EQ(WithArticle("Tesla V100"), "a Tesla V100");
}

}  // namespace
}  // namespace pawl
