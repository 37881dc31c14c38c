// Everybody at once: what the thread sanitizer looks at.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/names/resource_name.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

class CountingWatcher : public Watcher {
 public:
  void Wake() override { ++wakes; }
  void Show(const v1::Progress&) override { ++shown; }
  void Close() override {}
  std::atomic<int> wakes = 0, shown = 0;
};

TEST(ConcurrencyTest, ServesManyThreadsAndCountsEverythingOnce) {
  constexpr int kWorkers = 4, kCampaigns = 12;
  OrchestratorOptions options;
  options.lease = absl::Hours(10);  // the clock runs fast
  World world(options);
  std::atomic<bool> done = false;
  std::atomic<int> completed = 0;
  std::vector<std::unique_ptr<ScriptedWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<ScriptedWorker>(world, "w" + std::to_string(i)));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] {
      while (!done) {
        auto promise = std::make_shared<std::promise<absl::StatusOr<v1::LeaseTrialResponse>>>();
        workers[i]->Wait(
            1, [promise](absl::StatusOr<v1::LeaseTrialResponse> answer) { promise->set_value(std::move(answer)); });
        const absl::StatusOr<v1::LeaseTrialResponse> leased = promise->get_future().get();
        if (!leased.ok() || !leased->has_trial()) continue;
        EXPECT_TRUE(workers[i]->Renew(leased->lease()).ok());
        EXPECT_TRUE(workers[i]->Complete(*leased).ok());
        ++completed;
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      world.Pass(absl::Milliseconds(1));
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      EXPECT_TRUE(world->Workers({}).ok());
      EXPECT_TRUE(world.history().ListCampaigns({}).ok());
      world->leases_out();
      std::this_thread::yield();
    }
  });
  const auto watcher = std::make_shared<CountingWatcher>();
  std::vector<std::string> campaigns;
  for (int i = 0; i < kCampaigns; ++i) {
    campaigns.push_back(world.Submit());
    world.hub().Add(*ParseCampaignName(campaigns.back()), watcher);
  }
  for (const std::string& campaign : campaigns) {
    while (!world.Get(campaign).has_end_time()) std::this_thread::yield();
  }
  done = true;
  world->StopLeasing();  // who waits is sent away
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, 5 * kCampaigns);
  EXPECT_GT(watcher->wakes, 0);
  for (const std::string& campaign : campaigns) EXPECT_EQ(world.Iterations(campaign).size(), 5u);
  EXPECT_EQ(world->leases_out(), 0);
}

}  // namespace
}  // namespace pawl
