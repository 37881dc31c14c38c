// What an orchestrator still knows of campaigns that were moved out, and what it takes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/hash/hash.h"
#include "orchestrator/archive/retention.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

class ArchivedCampaignsTest : public testing::Test {
 protected:
  explicit ArchivedCampaignsTest(OrchestratorOptions options = {}) : world_(std::move(options)) {}

  absl::StatusOr<v1::Campaign> Submit(const std::string& request_id, const std::string& author = "ann") {
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    request.set_request_id(request_id);
    request.set_author(author);
    return world_->Submit(request);
  }
  // Of all trials until nothing is left; the start's baseline takes so long.
  void RunAll(double baseline_us) {
    ScriptedWorker worker(world_, "a");
    worker.RunAll([&](const v1::Trial& trial) {
      v1::TrialResult result = NothingHelps(trial);
      result.clear_stages();
      result.add_stages()->set_seconds(100);
      if (trial.has_parent()) return result;
      v1::BaselineTime& baseline = *result.add_baselines();
      baseline.set_size(trial.size());
      baseline.set_what("a library");
      baseline.set_graph_us(baseline_us);
      return result;
    });
  }
  std::filesystem::path file() const { return world_.file().parent_path() / "archive.pawl"; }
  void Archive() {
    world_.RestartAfter([&] {
      const absl::StatusOr<std::string> moved =
          ArchiveCampaigns(world_.file(), {.campaigns = {"1"}, .keep = "", .keep_best = false}, file());
      ASSERT_TRUE(moved.ok()) << moved.status();
    });
  }
  absl::Status Restore() {
    absl::Status status;
    world_.RestartAfter([&] { status = RestoreCampaigns(world_.file(), file()).status(); });
    return status;
  }
  // As somebody could who also knows how the hash of the content is made.
  void Change(const std::string& sql) {
    auto archive = SqliteConnection::Open(file(), SqliteConnection::Mode::kWrite, 1000);
    ASSERT_TRUE(archive.ok()) << archive.status();
    const absl::Status changed = (*archive)->Execute(sql);
    ASSERT_TRUE(changed.ok()) << changed;
    const absl::StatusOr<std::string> content = ArchiveContentHash(archive->get());
    ASSERT_TRUE(content.ok()) << content.status();
    ASSERT_TRUE((*archive)->Use("UPDATE meta SET value = ? WHERE key = 'content'").BindText(*content).Run().ok());
  }

  World world_;
};

TEST_F(ArchivedCampaignsTest, ARepeatedSubmissionGetsTheArchivedCampaign) {
  ASSERT_EQ(Submit("r1")->name(), "campaigns/1");
  RunAll(50);
  Archive();
  const absl::StatusOr<v1::Campaign> again = Submit("r1");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name(), "campaigns/1");
  EXPECT_EQ(again->state(), v1::FINISHED);
  EXPECT_TRUE(world_.store().UnfinishedCampaigns()->empty()) << "nothing was begun";
  ASSERT_TRUE(Restore().ok());
  EXPECT_EQ(Submit("r1")->name(), "campaigns/1");
  EXPECT_EQ(world_.Get("campaigns/1").state(), v1::FINISHED);
}

TEST_F(ArchivedCampaignsTest, ItsBaselineIsStillKnown) {
  ASSERT_TRUE(Submit("r1").ok());
  RunAll(50);
  ASSERT_EQ(world_.Get("campaigns/1").baseline_us(), 50);
  Archive();
  ASSERT_TRUE(Submit("r2").ok());
  RunAll(80);
  const std::vector<v1::Iteration> iterations = world_.Iterations("campaigns/2");
  ASSERT_FALSE(iterations.empty());
  EXPECT_EQ(world_.Get("campaigns/2").state(), v1::PAUSED) << "80 us where the archived campaign measured 50";
  EXPECT_THAT(world_.Get("campaigns/2").message(), HasSubstr("baseline"));
}

TEST_F(ArchivedCampaignsTest, WhatItTookStillCountsForALimit) {
  ASSERT_TRUE(Submit("r1").ok());
  RunAll(50);
  Archive();
  world_.RestartWithLimits({{"ann", {.gpu_seconds = 500, .dollars = {}}}});
  const absl::StatusOr<v1::Campaign> next = Submit("r2");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(next->message(), HasSubstr("ann has used 500 of 500 GPU seconds"));
  ASSERT_TRUE(Restore().ok());
  EXPECT_THAT(world_.Get(next->name()).message(), HasSubstr("ann has used 500 of 500")) << "and not twice";
}

TEST_F(ArchivedCampaignsTest, ABlobThatIsNotWhatItsHashSaysIsRefused) {
  ASSERT_TRUE(Submit("r1").ok());
  RunAll(50);
  Archive();
  Change("UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), 'a', 'b') AS BLOB)");
  const absl::Status refused = Restore();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has another content than its hash says"));
  EXPECT_TRUE(world_.store().ListCampaigns(0, 10)->empty());
}

TEST_F(ArchivedCampaignsTest, EventsThatMakeAnotherCampaignAreRefused) {
  ASSERT_TRUE(Submit("r1").ok());
  RunAll(50);
  Archive();
  const std::string whole = file().string() + ".whole";
  std::filesystem::copy_file(file(), whole);
  const auto refusal = [&](const std::string& sql) {
    std::filesystem::copy_file(whole, file(), std::filesystem::copy_options::overwrite_existing);
    Change(sql);
    const absl::Status refused = Restore();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_TRUE(world_.store().ListCampaigns(0, 10)->empty());
    return std::string(refused.message());
  };
  EXPECT_THAT(refusal("DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)"),
              HasSubstr("campaigns/1 in " + file().string() +
                        " can't be replayed: its events make another campaign than its row says; nothing was changed"));
  EXPECT_THAT(refusal("DELETE FROM events WHERE sequence = (SELECT min(sequence) FROM events)"),
              HasSubstr("it has no submission"));
  EXPECT_THAT(refusal("DELETE FROM iterations WHERE number = 2"), HasSubstr("another iteration 2"));
  EXPECT_THAT(refusal("UPDATE events SET payload = x'ff' WHERE sequence = 3"), HasSubstr("can't be read"));
  EXPECT_THAT(refusal("DELETE FROM blobs"), HasSubstr("its bundle is missing"));
  std::filesystem::copy_file(whole, file(), std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Restore().ok()) << "as it was written";
}

}  // namespace
}  // namespace pawl
