// A campaign's measurements as a recording. The campaign is one over transpose's shipped recording that is passed off
// as one of a GPU.
#include "worker/record/campaign_recording.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

fs::path Kernel(const std::string& name) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "kernels" / name;
}

v1::Bundle BundleOf(const std::string& name) { return ReadBundle(Kernel(name)).bundle; }

class CampaignRecordingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    home_ = std::make_unique<TemporaryFolder>("pawl-campaign-recording-");
    replayed_.bundle = BundleOf("transpose");
    replayed_.campaign = Replay("replayed.db", {});
    replayed_.iterations = Iterations("replayed.db");
    replayed_.copy_gb_s = 4200;
    measured_ = replayed_;
    measured_.campaign.set_device("NVIDIA H200");
    measured_.campaign.set_replay(false);
    for (v1::Iteration& iteration : measured_.iterations) iteration.set_device("NVIDIA H200");
  }
  static void TearDownTestSuite() { home_.reset(); }

  static ProcessResult Run(const std::vector<std::string>& arguments) {
    return Pawl(arguments, {{"HOME", home_->path().string()}, {"PAWL_DATABASE", ""}, {"PAWL_ORCHESTRATOR", ""}});
  }
  static std::string At(const std::string& name) { return (home_->path() / name).string(); }
  static v1::Campaign Replay(const std::string& database, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", Kernel("transpose").string(), "--device", "replay", "--no-progress",
                                         "--goal", "100", "--iterations", "12", "--database", At(database)});
    const ProcessResult run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const ProcessResult shown = Run({"show", "1", "--json", "--database", At(database)});
    return Parse<v1::Campaign>(shown.out);
  }
  static std::vector<v1::Iteration> Iterations(const std::string& database) {
    std::vector<v1::Iteration> iterations;
    for (const std::string& line : Lines(Run({"explain", "1", "--json", "--database", At(database)}).out)) {
      iterations.push_back(Parse<v1::Iteration>(line));
    }
    return iterations;
  }
  static std::vector<std::string> KeptChanges(const std::vector<v1::Iteration>& iterations) {
    std::vector<std::string> kept;
    for (const v1::Iteration& iteration : iterations) {
      if (iteration.verdict() != v1::KEPT) continue;
      kept.push_back(absl::StrCat(iteration.change().variable(), "=", iteration.change().to()));
    }
    return kept;
  }
  static Recording Recorded() {
    LeftOut left_out;
    absl::StatusOr<Recording> recording = RecordingOf(measured_, measured_.bundle, &left_out);
    EXPECT_TRUE(recording.ok()) << recording.status();
    return *std::move(recording);
  }
  static std::string Refusal(const MeasuredCampaign& measured, const v1::Bundle& bundle) {
    LeftOut left_out;
    const absl::Status status = RecordingOf(measured, bundle, &left_out).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  }

  inline static std::unique_ptr<TemporaryFolder> home_;
  inline static MeasuredCampaign replayed_, measured_;
};

TEST_F(CampaignRecordingTest, ReplaysTheSameKeptChangesInTheSameOrder) {
  FakeOrchestrator fake;
  fake.bundle = measured_.bundle;
  fake.iterations = measured_.iterations;
  for (v1::Iteration& iteration : fake.iterations) {
    iteration.set_name(absl::StrCat("campaigns/7/iterations/", iteration.number()));
  }
  fake.campaign = measured_.campaign;
  fake.campaign.set_name("campaigns/7");
  // Less than the product of the steps, and more than the first step, which is itself compared with the start.
  constexpr double kTotal = 3.5;
  v1::Event& event = *fake.events.emplace_back().mutable_event();
  event.set_sequence(1);
  v1::TotalGain& total = *event.mutable_finished()->mutable_total_gain();
  total.set_iteration(measured_.campaign.best());
  total.set_speedup_over_start(kTotal);
  total.mutable_interval()->set_mean_log_ratio(std::log(kTotal));
  for (int i = 0; i < 6; ++i) total.mutable_beside_baseline()->add_log_ratios(std::log(1.75));
  const std::string file = At("transpose.jsonl.gz");
  const ProcessResult record = Run(
      {"record", Kernel("transpose").string(), "--campaign", "7", "--orchestrator", fake.address(), "--output", file});
  ASSERT_EQ(record.exit_code, 0) << record.err;
  EXPECT_EQ(record.out, file + "\n");

  const v1::Campaign replayed = Replay("again.db", {"--recordings", file});
  EXPECT_EQ(replayed.total_gain().iteration(), replayed.best());
  EXPECT_NEAR(replayed.speedup_over_start(), kTotal, 0.03) << "as it was measured, no product";
  EXPECT_NEAR(replayed.speedup_over_baseline(), 1.75, 1e-6);
  const std::vector<std::string> kept = KeptChanges(measured_.iterations);
  ASSERT_GT(kept.size(), 3u);
  EXPECT_EQ(KeptChanges(Iterations("again.db")), kept);

  const ProcessResult again = Run(
      {"record", Kernel("transpose").string(), "--campaign", "7", "--orchestrator", fake.address(), "--output", file});
  EXPECT_THAT(again.err, HasSubstr("new in the recording: 0;"));
}

TEST_F(CampaignRecordingTest, HoldsWhatWasMeasuredBesideWhat) {
  const Recording recording = Recorded();
  const v1::RecordingHeader& header = recording.header;
  EXPECT_EQ(header.bundle(), "transpose");
  EXPECT_EQ(header.bundle_hash(), BundleHash(measured_.bundle));
  EXPECT_EQ(header.size(), measured_.campaign.spec().goal().size());
  EXPECT_EQ(header.gpu().name(), "NVIDIA H200");
  EXPECT_EQ(header.architecture(), "sm_90a");
  EXPECT_EQ(header.copy_gb_s(), 4200);
  EXPECT_EQ(header.planned(), recording.variants.size());
  EXPECT_GT(header.baseline_size(), 0);
  EXPECT_TRUE(header.of_campaigns());
  std::map<std::string, const v1::Iteration*> by_text;
  v1::Variant variant;
  for (const v1::Iteration& iteration : measured_.iterations) {
    *variant.mutable_values() = iteration.variant();
    by_text.emplace(VariantText(variant), &iteration);
  }
  EXPECT_EQ(VariantText(recording.variants[0].variant()), VariantText(StartVariant(measured_.bundle)));
  for (const v1::RecordedVariant& record : recording.variants) {
    const v1::Iteration& iteration = *by_text.at(VariantText(record.variant()));
    EXPECT_EQ(record.has_beside(), iteration.has_parent() && iteration.parent() != 0) << iteration.name();
    EXPECT_EQ(record.pairs_size(), iteration.pairs_size());
    EXPECT_EQ(record.start_cold_us(), measured_.iterations[0].cold_us());
    EXPECT_TRUE(record.stage_seconds().contains("measure"));
    EXPECT_TRUE(MessageDifferencer::Equals(record.evidence(), iteration.evidence()));
  }
}

TEST_F(CampaignRecordingTest, HoldsTheComparisonsOfTheBestWithStartAndBaseline) {
  MeasuredCampaign measured = measured_;
  const int best = measured.campaign.best();
  for (const double log_ratio : {0.5, 0.7}) {
    v1::TotalGain& total = measured.totals.emplace_back();
    total.set_iteration(best);
    total.set_speedup_over_start(2);
    total.mutable_interval()->set_mean_log_ratio(log_ratio);
    total.mutable_beside_baseline()->add_log_ratios(log_ratio + 1);
  }
  measured.totals.emplace_back(measured.totals[0]).clear_speedup_over_start();  // it could not be measured
  LeftOut left_out;
  const absl::StatusOr<Recording> recording = RecordingOf(measured, measured.bundle, &left_out);
  ASSERT_TRUE(recording.ok()) << recording.status();
  v1::Variant variant;
  *variant.mutable_values() = measured.iterations[static_cast<size_t>(best)].variant();
  int with = 0;
  for (const v1::RecordedVariant& record : recording->variants) {
    if (!record.has_beside_start()) continue;
    ++with;
    EXPECT_EQ(VariantText(record.variant()), VariantText(variant));
    EXPECT_EQ(record.beside_start().mean_log_ratio(), 0.7) << "the last one";
    EXPECT_THAT(record.beside_baseline().log_ratios(), ElementsAre(1.7));
  }
  EXPECT_EQ(with, 1);
}

TEST_F(CampaignRecordingTest, LeavesOutWhatNoReplayCanStandFor) {
  MeasuredCampaign measured = measured_;
  ASSERT_EQ(measured.iterations[2].parent(), 1);
  measured.iterations[1].set_patched_source_hash("ed17");
  v1::Iteration rejected = measured.iterations.back();
  rejected.set_number(99);
  rejected.set_verdict(v1::REJECTED);
  measured.iterations.push_back(rejected);
  LeftOut left_out;
  const absl::StatusOr<Recording> recording = RecordingOf(measured, measured.bundle, &left_out);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_LT(recording->variants.size(), Recorded().variants.size());
  EXPECT_THAT(left_out["with a source edit"], ElementsAre("iteration 1"));
  EXPECT_THAT(left_out["measured beside one that is left out"], testing::Contains("iteration 2"));
  EXPECT_THAT(left_out["rejected"], testing::Contains("iteration 99"));
}

// A step that is faster than its parent is reverted because its parent is not the best variant: its times are right.
TEST_F(CampaignRecordingTest, HoldsTheStepsOfExpeditions) {
  MeasuredCampaign measured = measured_;
  v1::Iteration& step = measured.iterations[1];
  ASSERT_EQ(measured.iterations[2].parent(), step.number());
  ASSERT_EQ(step.comparison(), v1::FASTER);
  step.set_verdict(v1::REVERTED);
  const auto recorded = [&measured](LeftOut* left_out) {
    return RecordingOf(measured, measured.bundle, left_out).value_or(Recording()).variants.size();
  };
  LeftOut left_out, taken_back, taken_back_as_end;
  EXPECT_LT(recorded(&taken_back), Recorded().variants.size());
  EXPECT_THAT(taken_back["taken back"], ElementsAre("iteration 1"));
  step.set_expedition(true);
  EXPECT_EQ(recorded(&left_out), Recorded().variants.size());
  EXPECT_THAT(left_out["taken back"], IsEmpty());
  step.set_parent_slowed(true);
  LeftOut slowed;
  EXPECT_LT(recorded(&slowed), Recorded().variants.size());
  EXPECT_THAT(slowed["beside a parent that it slowed down"], ElementsAre("iteration 1"));
  step.set_parent_slowed(false);
  step.mutable_over_best()->set_result(v1::FASTER);
  EXPECT_LT(recorded(&taken_back_as_end), Recorded().variants.size());
  EXPECT_THAT(taken_back_as_end["taken back"], ElementsAre("iteration 1")) << "it was kept as an expedition's end";
}

// Pairs of a leg of one size do not name it.
TEST_F(CampaignRecordingTest, HoldsNoTimesOfALegAtAnotherSize) {
  MeasuredCampaign measured = measured_;
  *measured.campaign.add_legs()->mutable_goal() = measured.campaign.spec().goal();
  measured.campaign.add_legs()->mutable_goal()->set_size("another");
  LeftOut all, left_out;
  const absl::StatusOr<Recording> whole = RecordingOf(measured, measured.bundle, &all);
  EXPECT_EQ(whole->variants.size(), Recorded().variants.size());
  v1::Iteration& last = measured.iterations.back();
  last.set_leg(1);
  const absl::StatusOr<Recording> recording = RecordingOf(measured, measured.bundle, &left_out);
  EXPECT_LT(recording->variants.size(), whole->variants.size());
  EXPECT_THAT(left_out["without times"], ElementsAre(absl::StrCat("iteration ", last.number())));
}

TEST_F(CampaignRecordingTest, ExtendsTheRecordingThatIsThere) {
  const Recording fresh = Recorded();
  ASSERT_GT(fresh.variants.size(), 4u);
  Recording there;
  there.header = fresh.header;
  there.header.set_host("the first machine");
  for (size_t i = 0; i < 2; ++i) {
    v1::RecordedVariant record = fresh.variants[i];
    record.set_warm_us(1234);
    there.Put(record);
  }
  LeftOut left_out;
  const absl::StatusOr<int> added = AddVariants(fresh, "some.jsonl.gz", &there, &left_out);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(*added, fresh.variants.size() - 2);
  EXPECT_THAT(left_out, IsEmpty());
  EXPECT_EQ(there.header.host(), "the first machine");
  EXPECT_EQ(there.header.planned(), fresh.variants.size());
  EXPECT_EQ(there.variants[1].warm_us(), 1234);
  ASSERT_TRUE(WriteRecording(At("extended.jsonl.gz"), there).ok());
  EXPECT_TRUE(ReadRecording(At("extended.jsonl.gz")).ok());
}

TEST_F(CampaignRecordingTest, AddsNothingThatWasMeasuredBesideWhatFailedThere) {
  const Recording fresh = Recorded();
  Recording there;
  there.header = fresh.header;
  there.Put(fresh.variants[0]);
  v1::RecordedVariant failed;
  *failed.mutable_variant() = fresh.variants[1].variant();
  failed.mutable_failure()->set_check(v1::CHECK_TOLERANCE);
  there.Put(failed);
  LeftOut left_out;
  ASSERT_TRUE(AddVariants(fresh, "some.jsonl.gz", &there, &left_out).ok());
  EXPECT_THAT(left_out, ElementsAre(Pair(HasSubstr("some.jsonl.gz lacks or has as failed"),
                                         testing::Contains(VariantText(fresh.variants[2].variant())))));
  ASSERT_TRUE(WriteRecording(At("failed.jsonl.gz"), there).ok());
  EXPECT_TRUE(ReadRecording(At("failed.jsonl.gz")).ok());
}

TEST_F(CampaignRecordingTest, RefusesARecordingOfSomethingElse) {
  const Recording fresh = Recorded();
  const auto refusal = [&](auto change) {
    Recording there;
    there.header = fresh.header;
    change(there.header);
    LeftOut left_out;
    return std::string(AddVariants(fresh, "some.jsonl.gz", &there, &left_out).status().message());
  };
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.set_bundle_hash("07e4"); }), HasSubstr("another state of the"));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.set_size("tiny"); }), HasSubstr("measured at size tiny"));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.mutable_gpu()->set_name("Tesla T4"); }), HasSubstr("on Tesla T4"));
}

TEST_F(CampaignRecordingTest, RefusesCampaignsThatItCantStandFor) {
  EXPECT_THAT(Refusal(measured_, BundleOf("softmax")), HasSubstr("not of softmax"));
  v1::Bundle edited = measured_.bundle;
  edited.mutable_source()->set_text(edited.source().text() + "// edited\n");
  EXPECT_THAT(Refusal(measured_, edited), HasSubstr("is of another state of the bundle"));
  EXPECT_THAT(Refusal(replayed_, replayed_.bundle), HasSubstr("ran on replay of an NVIDIA H200"));
  MeasuredCampaign waiting = measured_;
  waiting.iterations.clear();
  EXPECT_THAT(Refusal(waiting, waiting.bundle), HasSubstr("has no times of its start"));

  const ProcessResult program =
      Run({"record", Kernel("transpose").string(), "--campaign", "1", "--database", At("replayed.db")});
  EXPECT_EQ(program.exit_code, 1);
  EXPECT_THAT(program.err, HasSubstr("pawl record: campaigns/1 ran on replay of an NVIDIA H200"));
  EXPECT_EQ(Run({"record", "transpose", "--campaign", "1", "--sample", "9"}).exit_code, 2);
  EXPECT_EQ(Run({"record", "transpose", "--database", At("replayed.db")}).exit_code, 2);
}

}  // namespace
}  // namespace pawl
