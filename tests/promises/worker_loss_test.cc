// Promise 3: a dead or stopped worker's trial is leased again within 17 s. Promise 5: a trial that kills workers is put
// aside after exactly 3, and the others finish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "tests/orchestrator/running_service.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPromised = absl::Seconds(17);
constexpr absl::Duration kTick = absl::Milliseconds(200);  // as the server ticks

// A worker that renews until it is killed; or stopped, and later goes on as if nothing had happened.
TEST(WorkerLossTest, IsMadeGoodWithin17SecondsOnAFakeClock) {
  std::mt19937 random(7);
  absl::Duration latest;
  const int times = SoakCount(50, 500);
  for (int i = 0; i < 2 * times; ++i) {
    const bool stopped = i % 2 == 1;
    World world;
    const std::string campaign = world.Submit();
    ScriptedWorker lost(world, "lost"), other(world, "other");
    const v1::LeaseTrialResponse leased = lost.MustLease();
    std::optional<absl::StatusOr<v1::LeaseTrialResponse>> taken;
    other.Wait(60, [&](absl::StatusOr<v1::LeaseTrialResponse> answer) { taken = std::move(answer); });
    // Renews every 5 s as workers do, for a while.
    for (int renewals = static_cast<int>(random() % 4); renewals > 0; --renewals) {
      for (int tick = 0; tick < 25; ++tick) world.Pass(kTick);
      ASSERT_TRUE(lost.Renew(leased.lease()).ok());
    }
    for (int ticks = static_cast<int>(random() % 25); ticks > 0; --ticks) world.Pass(kTick);
    const absl::Time silent = world.now();
    while (!taken && world.now() - silent < absl::Seconds(60)) world.Pass(kTick);
    ASSERT_TRUE(taken && taken->ok() && (*taken)->has_trial());
    EXPECT_EQ((*taken)->trial().name(), leased.trial().name());
    EXPECT_EQ((*taken)->trial().attempt(), 2);
    EXPECT_LE(world.now() - silent, kPromised);
    latest = std::max(latest, world.now() - silent);
    if (stopped) {  // SIGCONT: what it does now changes nothing
      ExpectError(lost.Renew(leased.lease()).status(), absl::StatusCode::kAborted, "leased again");
      ExpectError(lost.Complete(leased).status(), absl::StatusCode::kAborted, "leased again");
    }
    ASSERT_TRUE(other.Complete(**taken).ok());
    EXPECT_EQ(static_cast<int>(world.Iterations(campaign).size()), 1);
  }
  ReportPromise(3, absl::StrFormat("fake clock: %d killed, %d stopped; the latest was leased again after %.1f s", times,
                                   times, absl::ToDoubleSeconds(latest)));
}

// Real programs, real signals, the real clock.
TEST(WorkerLossTest, IsMadeGoodWithin17SecondsOnTheRealClock) {
  const int pairs = SoakCount(1, 5);  // of workers, of which one is killed and one is stopped
  absl::Duration latest;
  int lost = 0;
  for (int round = 0; round < SoakCount(1, 2); ++round) {
    const TemporaryFolder folder("pawl-loss-");
    const std::string database = (folder.path() / "pawl.db").string();
    const std::string address = "unix:" + (folder.path() / "socket").string();
    auto orchestrator = std::make_unique<Daemon>("pawl-orchestrator",
                                                 std::vector<std::string>{"--listen", address, "--database", database});
    ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
    Client client(address);
    // A recorded trial takes a second or two: slowed down, it is still being measured when the signal comes.
    const auto start = [&](const std::string& name) {
      return std::make_unique<Daemon>(
          "pawl-worker", std::vector<std::string>{"--orchestrator", address, "--device", "replay", "--replay-speed",
                                                  "0.001", "--name", name});
    };
    std::vector<std::unique_ptr<Daemon>> victims, heirs;
    for (int i = 0; i < 2 * pairs; ++i) {
      client.Submit(ShippedBundle("softmax"));
      victims.push_back(start(absl::StrCat("victim-", i)));
    }
    for (int i = 0; i < 2 * pairs; ++i) {
      ASSERT_TRUE(Client::Until(std::chrono::seconds(20), [&] {
        return client.FindWorker(absl::StrCat("workers/victim-", i)).trials_size() == 1;
      })) << victims[i]->Output();
    }
    for (int i = 0; i < 2 * pairs; ++i) heirs.push_back(start(absl::StrCat("heir-", i)));
    for (int i = 0; i < 2 * pairs; ++i) {
      ASSERT_TRUE(Client::Until(std::chrono::seconds(20), [&] {
        return client.FindWorker(absl::StrCat("workers/heir-", i)).state() == v1::WORKER_STATE_IDLE;
      })) << heirs[i]->Output();
    }
    const absl::Time silent = absl::Now();
    for (int i = 0; i < 2 * pairs; ++i) victims[i]->Signal(i % 2 == 0 ? SIGKILL : SIGSTOP);
    for (int i = 0; i < 2 * pairs; ++i) {
      EXPECT_TRUE(Client::Until(std::chrono::seconds(30), [&] {
        return client.FindWorker(absl::StrCat("workers/heir-", i)).trials_size() == 1;
      }));
    }
    for (int i = 1; i < 2 * pairs; i += 2) {
      victims[i]->Signal(SIGCONT);
      EXPECT_TRUE(victims[i]->Says("leased again")) << "it learns that its trial is another's";
    }
    orchestrator->Signal(SIGKILL);
    orchestrator.reset();
    const auto store = Store::Open({.file = database}).value();
    for (int64_t number = 1; number <= 2 * pairs; ++number) {
      const std::vector<v1::Event> events = store->Events(number, 0, 1000).value();
      for (const v1::Event& event : events) {
        if (!event.has_leased() || event.leased().attempt() != 2) continue;
        const absl::Duration after = TimeOf(event.time()) - silent;
        EXPECT_LT(after, kPromised);
        latest = std::max(latest, after);
        ++lost;
      }
    }
  }
  EXPECT_EQ(lost, 2 * pairs * SoakCount(1, 2));
  ReportPromise(3, absl::StrFormat("real programs: %d killed, %d stopped; the latest was leased again after %.1f s",
                                   lost / 2, lost / 2, absl::ToDoubleSeconds(latest)));
}

TEST(DeadlyTrialTest, IsPutAsideAfterExactlyThreeWorkers) {
  std::mt19937 random(11);
  const int campaigns = SoakCount(20, 200);
  World world;
  int deadly = 0, finished = 0;
  for (int i = 0; i < campaigns; ++i) {
    const std::string campaign = world.Submit();
    const std::string killer = absl::StrCat(campaign, "/trials/", 2 + random() % 4);
    int killed = 0;
    for (int started = 0; !world.Get(campaign).has_end_time(); ++started) {
      ASSERT_LT(started, 20);
      ScriptedWorker worker(world, absl::StrCat("w", i, "-", started));
      bool alive = true;
      while (alive) {
        const absl::StatusOr<v1::LeaseTrialResponse> leased = worker.Lease();
        ASSERT_TRUE(leased.ok()) << leased.status();
        if (!leased->has_trial()) break;
        alive = leased->trial().name() != killer;
        if (alive) {
          ASSERT_TRUE(worker.Complete(*leased).ok());
          ++finished;
        } else {
          ASSERT_TRUE(worker.Renew(leased->lease()).ok()) << "it has begun";
        }
      }
      killed += !alive;
      for (int tick = 0; tick < 4; ++tick) world.Pass(absl::Seconds(4));
    }
    EXPECT_EQ(killed, 3) << campaign;
    deadly += killed == 3;
    const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
    EXPECT_EQ(std::count_if(iterations.begin(), iterations.end(),
                            [](const v1::Iteration& each) { return each.verdict() == v1::REJECTED; }),
              1);
    EXPECT_EQ(iterations.size(), 5u) << "the others finish";
  }
  ReportPromise(5, absl::StrCat("fake clock: ", deadly, " deadly trials, each put aside after 3 workers; ", finished,
                                " others finished"));
}

// Workers that really die with the trial in their hands.
TEST(DeadlyTrialTest, IsPutAsideAfterThreeRealWorkers) {
  OrchestratorOptions options;
  options.lease = absl::Seconds(1);
  options.renew = absl::Milliseconds(300);
  int rounds = 0;
  for (; rounds < SoakCount(1, 10); ++rounds) {
    RunningService service(options);
    Client client(service.server().address());
    std::vector<std::string> campaigns;
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(3);
    for (int i = 0; i < 2; ++i) {
      campaigns.push_back(client.Submit(ShippedBundle("softmax"), spec));
    }
    const auto start = [&](const std::string& name, const std::map<std::string, std::string>& env) {
      return std::make_unique<Daemon>(
          "pawl-worker",
          std::vector<std::string>{"--orchestrator", service.server().address(), "--device", "replay", "--name", name},
          env);
    };
    for (int i = 1; i <= 3; ++i) {
      EXPECT_NE(client.Get(campaigns[0]).state(), v1::PAUSED) << "not before the third";
      const auto dies = start(absl::StrCat("dies-", i), {{"PAWL_FAULT", "after-lease"}});
      EXPECT_EQ(dies->WaitForEnd(std::chrono::seconds(20)), -2) << dies->Output();
      EXPECT_THAT(dies->Output(), HasSubstr("FOR TESTS ONLY"));
      // Until then the next would take a trial of the other campaign.
      EXPECT_TRUE(Client::Until(std::chrono::seconds(20),
                                [&] { return client.FindWorker(absl::StrCat("workers/dies-", i)).trials().empty(); }));
    }
    EXPECT_TRUE(Client::Until(std::chrono::seconds(10), [&] { return client.Get(campaigns[0]).state() == v1::PAUSED; }))
        << "its start costs workers";
    EXPECT_THAT(client.Get(campaigns[0]).message(), HasSubstr("3 workers were lost"));
    const auto lives = start("lives", {});
    EXPECT_TRUE(Client::Until(std::chrono::seconds(20), [&] { return client.Get(campaigns[1]).has_end_time(); }));
    EXPECT_EQ(client.Get(campaigns[1]).state(), v1::FINISHED);
  }
  ReportPromise(5, absl::StrCat("real workers: ", rounds, " deadly trials, each put aside after 3; ", rounds,
                                " other campaigns finished"));
}

}  // namespace
}  // namespace pawl
