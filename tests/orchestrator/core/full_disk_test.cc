// What cannot be written is not acknowledged, and what was acknowledged is not lost.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <optional>

#include "base/hash/hash.h"
#include "db/sqlite.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

// Writes blobs until the disk is full.
absl::Status Fill(World& world) {
  for (int i = 0;; ++i) {
    v1::PutBlobRequest put;
    put.set_kind(v1::Blob::LOG);
    put.set_content(std::to_string(i) + std::string(20'000, 'x'));
    put.set_hash(Sha256(put.content()));
    if (absl::Status status = world->PutBlob(put).status(); !status.ok()) return status;
    if (i == 1000) return absl::InternalError("the disk does not fill up");
  }
}

TEST(FullDiskTest, ServesNothingUntilThereIsSpaceAndLosesNothing) {
  constexpr int64_t kPages = 400;
  World world({}, kPages);
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a"), other(world, "b", MadeDevice("NVIDIA L4"));
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  std::optional<absl::StatusOr<v1::LeaseTrialResponse>> waiting;
  other.Wait(60, [&](absl::StatusOr<v1::LeaseTrialResponse> answer) { waiting = std::move(answer); });
  ASSERT_TRUE(world->serving());

  const absl::Status full = Fill(world);
  ExpectError(full, absl::StatusCode::kUnavailable, "no space is left");
  EXPECT_GT(DetailOf(full).retry_after_seconds(), 0);
  EXPECT_FALSE(world->serving());
  ASSERT_TRUE(waiting) << "who waits is told";
  ExpectError(waiting->status(), absl::StatusCode::kUnavailable, "no space");
  const auto unavailable = absl::StatusCode::kUnavailable;
  ExpectError(worker.Complete(leased).status(), unavailable, "no space");
  ExpectError(worker.Renew(leased.lease()).status(), unavailable, "no space");
  ExpectError(worker.Lease().status(), unavailable, "no space");
  ExpectError(worker.Register(), unavailable, "no space");
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  ExpectError(world->Submit(submit).status(), unavailable, "no space");
  EXPECT_EQ(static_cast<int>(world.Iterations(campaign).size()), 1) << "what is there can be read";
  world.Pass(absl::Seconds(1));
  EXPECT_FALSE(world->serving()) << "the disk is still full";

  absl::StatusOr<std::unique_ptr<SqliteConnection>> shell =
      SqliteConnection::Open(world.file(), SqliteConnection::Mode::kWrite, 1000);
  ASSERT_TRUE(shell.ok() && (*shell)->Execute("DELETE FROM blobs WHERE length(content) > 20000").ok());
  world.Pass(absl::Seconds(20));
  EXPECT_TRUE(world->serving());
  EXPECT_TRUE(worker.Complete(leased).ok()) << "its lease was adopted";
  EXPECT_EQ(static_cast<int>(world.Iterations(campaign).size()), 2);
  EXPECT_EQ(world.Submit(), "campaigns/2") << "the submission that was refused used up no number";
  EXPECT_EQ(worker.RunAll(), 8);
}

TEST(FullDiskTest, ReadsItsStateAgainAfterAWriteThatMayOrMayNotBeThere) {
  FaultyDisk disk;
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  disk.FailSyncs(SQLITE_IOERR_FSYNC);
  ExpectError(worker.Complete(leased).status(), absl::StatusCode::kUnavailable, "disk failed");
  world.Pass(absl::Seconds(1));
  EXPECT_FALSE(world->serving());
  disk.Heal();
  world.Pass(absl::Seconds(1));
  EXPECT_TRUE(world->serving());
  EXPECT_FALSE(world.store().uncertain());
  const absl::Status again = worker.Complete(leased).status();
  EXPECT_TRUE(again.ok() || again.code() == absl::StatusCode::kAlreadyExists) << again;
  EXPECT_EQ(world.Iterations(campaign).size(), 1u);
  EXPECT_EQ(worker.RunAll(), 4);
}

TEST(FullDiskTest, AcknowledgesNoneOfSeveralResultsThatCouldNotBeWrittenTogether) {
  FaultyDisk disk;
  World world({.result_threads = 1});
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  v1::CompleteTrialRequest request;
  request.set_worker(worker.name());
  request.set_instance("one");
  request.set_lease(leased.lease());
  *request.mutable_result() = NothingHelps(leased.trial());
  SayWhatItIsOf(leased.trial(), &request);
  disk.FailSyncs(SQLITE_IOERR_FSYNC);
  for (const absl::Status& answer : world.CompleteTogether({request, request})) {
    ExpectError(answer, absl::StatusCode::kUnavailable, "disk failed");  // not: there already
  }
  disk.Heal();
  world.Pass(absl::Seconds(1));
  const absl::Status again = worker.Complete(leased).status();
  EXPECT_TRUE(again.ok() || again.code() == absl::StatusCode::kAlreadyExists) << again;
  EXPECT_EQ(world.Iterations(campaign).size(), 1u);
}

}  // namespace
}  // namespace pawl
