// kill -9 at any moment loses nothing that was acknowledged.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>

#include "db/store.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

constexpr int kKills = 20;

// Commits iterations from this number on, and writes the sequence of each to the pipe once it is acknowledged.
[[noreturn]] void CommitUntilKilled(const std::filesystem::path& file, int64_t number, int acknowledged) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open({.file = file});
  if (!store.ok()) _exit(1);
  for (;; ++number) {
    Writes writes = MakeWrites(MakeJudged(1, MakeIteration(1, number, v1::KEPT)));
    writes.events[0].mutable_finished()->mutable_result()->set_notes(std::string(number * 37 % 9000, 'x'));
    if (!(*store)->Commit(&writes).ok()) _exit(1);
    const int64_t sequence = writes.events[0].sequence();
    if (write(acknowledged, &sequence, sizeof sequence) != sizeof sequence) _exit(1);
  }
}

// The latest sequence that came before the kill.
int64_t KillAWriter(const std::filesystem::path& file, int64_t number, std::mt19937* random) {
  int acknowledged[2];
  EXPECT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(acknowledged[0]);
    CommitUntilKilled(file, number, acknowledged[1]);
  }
  close(acknowledged[1]);
  int64_t sequence = 0;
  int64_t expected = number;
  const int wanted = 1 + (*random)() % 100;
  const auto next = [&] {
    if (read(acknowledged[0], &sequence, sizeof sequence) != sizeof sequence) return false;
    EXPECT_EQ(sequence, ++expected);
    return true;
  };
  for (int i = 0; i < wanted; ++i) {
    if (!next()) {
      ADD_FAILURE() << "the writer ended by itself";
      break;
    }
  }
  // Anywhere in the commit that follows.
  const auto moment = std::chrono::steady_clock::now() + std::chrono::microseconds((*random)() % 1000);
  while (std::chrono::steady_clock::now() < moment) {
  }
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  while (next()) {
  }
  close(acknowledged[0]);
  return expected;
}

TEST(CrashTest, KeepsEveryAcknowledgedEventThroughKills) {
  const TemporaryFolder folder("pawl-crash-");
  const std::filesystem::path file = folder.path() / "pawl.db";
  std::mt19937 random(std::random_device{}());
  int64_t there = 0;
  for (int round = 0; round < kKills; ++round) {
    const int64_t acknowledged = KillAWriter(file, there, &random);
    auto store = OpenStore({.file = file});
    ASSERT_NE(store, nullptr);
    const auto events = store->Events(1, 0, 1000000).value();
    there = static_cast<int64_t>(events.size());
    EXPECT_GE(there, acknowledged);
    EXPECT_LE(there, acknowledged + 1) << "at most the one that was being acknowledged";
    for (int64_t i = 0; i < there; ++i) {
      ASSERT_EQ(events[i].sequence(), i + 1);
      ASSERT_EQ(events[i].finished().iteration().number(), i);
      ASSERT_EQ(static_cast<int64_t>(events[i].finished().result().notes().size()), i * 37 % 9000);
    }
    const auto iterations = store->ListIterations({.campaign = 1, .limit = 1000000}).value();
    ASSERT_EQ(static_cast<int64_t>(iterations.size()), there);
    EXPECT_EQ(store->GetCampaign(1)->value().last_sequence(), there);
  }
  EXPECT_GT(there, kKills);
}

}  // namespace
}  // namespace pawl
