// What campaigns teach, what is imported, and what later campaigns have of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <optional>
#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kRule[] = "a-rule-of-this-test";

v1::Effect MoreParallelism() {
  v1::Effect effect;
  effect.set_resource(v1::RESOURCE_PARALLELISM);
  effect.set_direction(v1::DIRECTION_MORE);
  return effect;
}

// Says of every change that it serves a finding.
class ServingChooser : public Chooser {
 public:
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    std::optional<Choice> choice = NeighbourChooser().Next(campaign);
    if (!choice) return choice;
    choice->finding.emplace().set_rule(kRule);
    choice->effect = MoreParallelism();
    return choice;
  }
};

v1::Bundle ServedBundle() {
  v1::Bundle bundle = TinyBundle();
  for (v1::Variable& variable : *bundle.mutable_variables()) *variable.add_affects() = MoreParallelism();
  return bundle;
}

v1::ImportPatternsRequest FileOf(int tried) {
  v1::ImportPatternsRequest request;
  request.mutable_file()->set_version(1);
  request.mutable_file()->set_source("ann's");
  v1::Pattern& pattern = *request.mutable_file()->add_patterns();
  pattern.set_rule(kRule);
  *pattern.mutable_effect() = MoreParallelism();
  pattern.set_architecture("sm_90");
  pattern.set_bundle("tiny");
  pattern.set_tried(tried);
  return request;
}

class PatternsTest : public ::testing::Test {
 protected:
  PatternsTest() : world_({}, 0, &chooser_) {}

  static v1::ListPatternsResponse List(World& world) {
    v1::ListPatternsRequest request;
    request.set_rule(kRule);
    request.set_by_bundle(true);
    const absl::StatusOr<v1::ListPatternsResponse> list = world->Patterns(request);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *list : v1::ListPatternsResponse();
  }

  // How often the change of this test's rule had been tried, over all bundles, when the campaign was submitted.
  int TriedBefore(const std::string& campaign) {
    const v1::Event submitted = world_.Events(campaign, v1::Event::kSubmitted).at(0);
    for (const v1::Pattern& pattern : submitted.submitted().patterns()) {
      if (pattern.rule() == kRule && pattern.bundle().empty()) return pattern.tried();
    }
    return 0;
  }

  const ServingChooser chooser_;
  World world_;
};

TEST_F(PatternsTest, AreWhatWasJudgedAndStayAfterARestart) {
  EXPECT_EQ(List(world_).patterns_size(), 0);
  const std::string campaign = world_.Submit({}, ServedBundle());
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  const v1::ListPatternsResponse list = List(world_);
  ASSERT_EQ(list.patterns_size(), 2);
  EXPECT_EQ(list.patterns(0).bundle(), "");
  EXPECT_EQ(list.patterns(1).bundle(), "tiny");
  EXPECT_EQ(list.patterns(0).architecture(), "sm_90") << "by the GPU's name";
  EXPECT_EQ(list.patterns(0).tried(), world_.Get(campaign).counts().tried()) << "all but the start";
  EXPECT_EQ(list.patterns(0).kept(), world_.Get(campaign).counts().kept());
  EXPECT_GT(list.patterns(0).kept(), 0);
  EXPECT_NEAR(list.patterns(0).median_gain(), 1 / 0.9, 0.01);
  world_.Restart();
  EXPECT_TRUE(MessageDifferencer::Equals(List(world_), list));
}

TEST_F(PatternsTest, OfEarlierCampaignsAreInTheFirstEventOfALaterOneAndStayThere) {
  const std::string first = world_.Submit({}, ServedBundle());
  ScriptedWorker worker(world_, "a");
  worker.RunAll();
  const int taught = List(world_).patterns(0).tried();
  ASSERT_GE(taught, 3);
  const std::string second = world_.Submit({}, ServedBundle());
  worker.RunAll();
  EXPECT_EQ(TriedBefore(first), 0);
  EXPECT_EQ(TriedBefore(second), taught) << "not what it taught itself";
  EXPECT_EQ(List(world_).patterns(0).tried(), 2 * taught);
}

TEST_F(PatternsTest, ThatWereImportedAreThereForTheNextCampaignAndAfterARestart) {
  const std::string before = world_.Submit({}, ServedBundle());
  const absl::StatusOr<v1::ImportPatternsResponse> imported = world_->ImportPatterns(FileOf(7));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->imported(), 1);
  EXPECT_EQ(TriedBefore(world_.Submit({}, ServedBundle())), 7);
  world_.Restart();
  EXPECT_EQ(TriedBefore(world_.Submit({}, ServedBundle())), 7);
  EXPECT_EQ(TriedBefore(before), 0);
  ASSERT_TRUE(world_->ImportPatterns(FileOf(9)).ok());
  EXPECT_EQ(List(world_).patterns(0).tried(), 9) << "the same source replaces what it brought";
}

TEST_F(PatternsTest, ThatCannotBeAreRefused) {
  v1::ImportPatternsRequest newer = FileOf(7);
  newer.mutable_file()->set_version(2);
  const absl::Status status = world_->ImportPatterns(newer).status();
  ExpectError(status, absl::StatusCode::kInvalidArgument, "version 2");
  EXPECT_EQ(DetailOf(status).field(), "file");
  v1::ImportPatternsRequest odd = FileOf(7);
  odd.mutable_file()->mutable_patterns(0)->set_kept(8);
  ExpectError(world_->ImportPatterns(odd).status(), absl::StatusCode::kInvalidArgument, "patterns[0]");
  EXPECT_EQ(List(world_).patterns_size(), 0);
}

TEST_F(PatternsTest, CountAnIterationOnceThoughItCouldNotBeWrittenAtFirst) {
  FaultyDisk disk;
  World world({}, 0, &chooser_);
  const std::string campaign = world.Submit({}, ServedBundle());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  disk.FailSyncs(SQLITE_IOERR_FSYNC);
  ExpectError(worker.Complete(leased).status(), absl::StatusCode::kUnavailable, "disk failed");
  disk.Heal();
  world.Pass(absl::Seconds(1));
  ASSERT_TRUE(world->serving());
  (void)worker.Complete(leased);  // it was written the first time, or is now
  worker.RunAll();
  EXPECT_GT(world.Get(campaign).counts().tried(), 1);
  EXPECT_EQ(List(world).patterns(0).tried(), world.Get(campaign).counts().tried());
}

}  // namespace
}  // namespace pawl
