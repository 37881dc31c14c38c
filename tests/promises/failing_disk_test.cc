// Promise 11: a full or failing disk: not serving, nothing corrupt, recovers by itself.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "db/sqlite.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

void ExpectSound(const std::filesystem::path& file) {
  const auto shell = SqliteConnection::Open(file, SqliteConnection::Mode::kRead, 1000).value();
  Statement check = shell->Use("PRAGMA integrity_check");
  ASSERT_TRUE(check.Step().value());
  EXPECT_EQ(check.Bytes(0), "ok");
}

// Runs campaigns on a disk whose every n-th operation fails, heals it, and looks at what was acknowledged.
TEST(FailingDiskTest, LosesNothingThatWasAcknowledgedWhateverFails) {
  constexpr int kCodes[] = {SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ, SQLITE_IOERR_TRUNCATE,
                            SQLITE_FULL};
  const int rounds = SoakCount(40, 1000);
  std::mt19937 random(5);
  FaultyDisk disk;
  World world;
  ScriptedWorker worker(world, "a");
  std::set<std::string> acknowledged;
  int failures = 0;
  for (int round = 0; round < rounds; ++round) {
    const int code = kCodes[round % std::size(kCodes)];
    SCOPED_TRACE(absl::StrCat("round ", round, ", SQLite's code ", code));
    disk.FailAfter(static_cast<int>(random() % 60), code);
    // Whatever happens to be asked, until something fails.
    for (int i = 0; i < 40 && world->serving(); ++i) {
      v1::SubmitCampaignRequest submit;
      *submit.mutable_bundle() = TinyBundle();
      if (i % 8 == 0) {
        const absl::StatusOr<v1::Campaign> campaign = world->Submit(submit);
        EXPECT_TRUE(campaign.ok() || absl::IsUnavailable(campaign.status())) << campaign.status();
      }
      const absl::StatusOr<v1::LeaseTrialResponse> leased = worker.Lease();
      EXPECT_TRUE(leased.ok() || absl::IsUnavailable(leased.status())) << leased.status();
      if (!leased.ok() || !leased->has_trial()) continue;
      const absl::Status completed = worker.Complete(*leased).status();
      EXPECT_TRUE(completed.ok() || absl::IsUnavailable(completed)) << completed;
      if (completed.ok()) {
        EXPECT_TRUE(acknowledged.insert(leased->trial().name()).second) << leased->trial().name() << " counted twice";
      }
    }
    failures += !world->serving();
    disk.Heal();
    world.Pass(absl::Seconds(1));
    ASSERT_TRUE(world->serving()) << "it recovers by itself";
    world.Pass(absl::Seconds(16));  // what was leased and not told of runs out
    ASSERT_TRUE(worker.Register().ok());
  }
  EXPECT_GT(failures, rounds / 4);
  worker.RunAll();
  ExpectSound(world.file());
  world.Restart();
  std::set<std::string> finished;
  std::set<int64_t> sequences;
  const std::vector<v1::Campaign> campaigns = world.store().ListCampaigns(0, 1'000'000).value();
  for (const v1::Campaign& campaign : campaigns) {
    for (const v1::Event& event : world.Events(campaign.name())) {
      EXPECT_TRUE(sequences.insert(event.sequence()).second);
      if (!event.has_finished()) continue;
      EXPECT_TRUE(finished.insert(absl::StrCat(campaign.name(), "/trials/", event.finished().trial())).second);
    }
  }
  for (const std::string& trial : acknowledged) EXPECT_TRUE(finished.contains(trial)) << trial << " was acknowledged";
  ReportPromise(11, absl::StrCat("EIO and ENOSPC injected into ", rounds, " rounds, ", failures,
                                 " times in mid-commit: recovered each time, ", acknowledged.size(),
                                 " acknowledged results all there once, database sound"));
}

// A limit on the file's pages, which SQLite keeps by itself.
TEST(FailingDiskTest, GoesOnAfterTheFileWasFull) {
  const int times = SoakCount(2, 20);
  for (int i = 0; i < times; ++i) {
    World world({}, 300 + 7 * i);
    const std::string campaign = world.Submit();
    ScriptedWorker worker(world, "a");
    ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
    const v1::LeaseTrialResponse leased = worker.MustLease();
    absl::Status full;
    for (int blob = 0; full.ok() && blob < 1000; ++blob) {
      v1::PutBlobRequest put;
      put.set_kind(v1::Blob::LOG);
      put.set_content(absl::StrCat(blob, std::string(20'000, 'x')));
      put.set_hash(Sha256(put.content()));
      full = world->PutBlob(put).status();
    }
    ExpectError(full, absl::StatusCode::kUnavailable, "no space is left");
    EXPECT_FALSE(world->serving());
    const auto shell = SqliteConnection::Open(world.file(), SqliteConnection::Mode::kWrite, 1000).value();
    ASSERT_TRUE(shell->Execute("DELETE FROM blobs WHERE length(content) > 20000").ok());
    world.Pass(absl::Seconds(1));
    EXPECT_TRUE(world->serving());
    EXPECT_TRUE(worker.Complete(leased).ok());
    EXPECT_EQ(world.Get(campaign).counts().tried(), 1);
    ExpectSound(world.file());
  }
  ReportPromise(11, absl::StrCat("page limit reached ", times, " times: not serving, and again once there was space"));
}

}  // namespace
}  // namespace pawl
