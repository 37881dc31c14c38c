// A database that was restored from a copy: leases of the original mean nothing in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

std::filesystem::path BackUp(World& world) {
  std::filesystem::path backup = world.file();
  backup += ".backup";
  EXPECT_TRUE(world.store().Backup(backup).ok());
  return backup;
}

v1::Bundle AnotherBundle() {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text(bundle.source().text() + "// another\n");
  return bundle;
}

TEST(RestoreTest, AResultFromBeforeIsNotTakenForAnotherTrialOfTheSameName) {
  World world;
  ScriptedWorker worker(world, "a"), other(world, "b");
  const std::filesystem::path backup = BackUp(world);
  world.Submit();
  const v1::LeaseTrialResponse before = worker.MustLease();
  world.Restore(backup);
  const std::string campaign = world.Submit({}, AnotherBundle());
  for (ScriptedWorker* holder : {&worker, &other}) {
    const v1::LeaseTrialResponse now = holder->MustLease();
    ASSERT_EQ(now.trial().name(), before.trial().name());
    ExpectError(worker.Complete(before).status(), absl::StatusCode::kAborted, "");
    ExpectError(worker.Renew(before.lease()).status(), absl::StatusCode::kAborted, "");
    EXPECT_TRUE(world.Iterations(campaign).empty());
    ASSERT_TRUE(holder->GiveBack(now.lease()).ok());
  }
  EXPECT_EQ(worker.RunAll(), 5);
}

TEST(RestoreTest, EndsTheLeasesThatWereOutAndBlamesNobody) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const int restores = SoakCount(4, 100);
  int refused = 0, blamed = 0;
  for (int restored = 1; restored <= restores; ++restored) {
    const v1::LeaseTrialResponse leased = worker.MustLease();
    EXPECT_EQ(leased.trial().attempt(), restored);
    ASSERT_TRUE(worker.Renew(leased.lease()).ok());
    world.Restore(BackUp(world));
    EXPECT_EQ(world->leases_out(), 0);
    for (const absl::Status& late : {worker.Complete(leased).status(), worker.Renew(leased.lease()).status()}) {
      ExpectError(late, absl::StatusCode::kAborted, "restored from a copy");
      refused += absl::IsAborted(late);
    }
  }
  for (const v1::Event& lost : world.Events(campaign, v1::Event::kLost)) {
    blamed += lost.lost().reason() != v1::LeaseLost::RESTORED;
  }
  EXPECT_EQ(blamed, 0);
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
  EXPECT_EQ(worker.RunAll(), 5);
  ReportPromise(
      13, absl::StrCat(restores, " restores with a trial leased, each ended the lease; ", refused, " of ", 2 * restores,
                       " results and renewals from before were refused, ", blamed, " counted against the trial"));
}

TEST(RestoreTest, IsRememberedUntilTheLeasesHaveEnded) {
  World world;
  world.Submit();
  EXPECT_FALSE(world.store().Copied());
  const std::filesystem::path backup = BackUp(world);
  for (int opened = 0; opened < 2; ++opened) EXPECT_TRUE(Store::Open({.file = backup}).value()->Copied());
  {
    const auto store = Store::Open({.file = backup}).value();
    Writes writes{.leases_ended = true};
    ASSERT_TRUE(store->Commit(&writes).ok());
    EXPECT_FALSE(store->Copied());
  }
  EXPECT_FALSE(Store::Open({.file = backup}).value()->Copied());
}

TEST(ResultTest, IsRefusedWhenItIsOfAnotherBundleVariantOrParent) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  const auto refused = [&](const std::string& field, const std::function<void(v1::Trial*)>& change) {
    v1::LeaseTrialResponse other = leased;
    change(other.mutable_trial());
    const absl::Status status = worker.Complete(other).status();
    ExpectError(status, absl::StatusCode::kInvalidArgument, field);
    EXPECT_EQ(DetailOf(status).field(), field);
  };
  refused("bundle_hash", [](v1::Trial* trial) { trial->set_bundle_hash("another"); });
  refused("variant", [](v1::Trial* trial) { *trial->mutable_variant() = trial->parent(); });
  refused("parent", [](v1::Trial* trial) { *trial->mutable_parent() = trial->variant(); });
  refused("parent", [](v1::Trial* trial) { trial->clear_parent(); });
  EXPECT_EQ(world.Iterations(campaign).size(), 1u);
  EXPECT_TRUE(worker.Complete(leased).ok());
}

}  // namespace
}  // namespace pawl
