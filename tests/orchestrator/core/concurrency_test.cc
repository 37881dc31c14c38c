// Everybody at once: what the thread sanitizer looks at.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
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

// Follows a campaign as the service's stream does: woken by the hub, it reads what is new from the store.
class Follower : public Watcher {
 public:
  Follower(Store& store, const std::string& campaign) : store_(store), campaign_(*ParseCampaignName(campaign)) {}
  void Wake() override {
    const std::lock_guard lock(mutex_);
    const absl::StatusOr<std::vector<v1::Event>> events = store_.Events(campaign_, after_, 1000);
    ASSERT_TRUE(events.ok()) << events.status();
    for (const v1::Event& event : *events) {
      after_ = event.sequence();
      if (event.finished().has_verification()) verified_.insert(event.finished().trial());
    }
  }
  void Show(const v1::Progress&) override {}
  void Close() override {}
  std::set<int> verified() {
    const std::lock_guard lock(mutex_);
    return verified_;
  }

 private:
  Store& store_;
  const int64_t campaign_;
  std::mutex mutex_;
  int64_t after_ = 0;
  std::set<int> verified_;  // trials
};

// Sound bundles that differ.
v1::Bundle TinyBundleCalled(const std::string& summary) {
  v1::Bundle bundle = TinyBundle();
  bundle.set_summary(summary);
  return bundle;
}

// Runs trials until told to stop.
void WorkUntil(const std::atomic<bool>& done, ScriptedWorker& worker) {
  while (!done) {
    const absl::StatusOr<v1::LeaseTrialResponse> leased = worker.Lease();
    ASSERT_TRUE(leased.ok()) << leased.status();
    if (leased->has_trial()) {
      ASSERT_TRUE(worker.Complete(*leased).ok());
    } else {
      std::this_thread::yield();
    }
  }
}

TEST(ConcurrencyTest, VerifiesSubmitsAndWatchesAtOnce) {
  constexpr int kEnded = 4, kVerifiers = 4, kRounds = 5, kSubmitters = 2, kSubmissions = 4, kWorkers = 2;
  World world;
  std::vector<std::string> ended;
  std::vector<std::shared_ptr<Follower>> followers;
  for (int i = 0; i < kEnded; ++i) {
    ended.push_back(world.Submit({}, TinyBundleCalled("ended " + std::to_string(i))));
    followers.push_back(std::make_shared<Follower>(world.store(), ended.back()));
    world.hub().Add(*ParseCampaignName(ended.back()), followers.back());
  }
  std::vector<std::unique_ptr<ScriptedWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<ScriptedWorker>(world, "w" + std::to_string(i)));
  }
  workers[0]->RunAll();
  for (const std::string& campaign : ended) ASSERT_TRUE(world.Get(campaign).has_end_time());

  std::atomic<bool> done = false;
  std::mutex mutex;
  std::vector<std::string> submitted;           // guarded by mutex
  std::vector<std::set<int>> promised(kEnded);  // trials; guarded by mutex
  std::vector<std::thread> threads, serving;
  for (int i = 0; i < kWorkers; ++i) serving.emplace_back([&, i] { WorkUntil(done, *workers[i]); });
  for (int i = 0; i < kVerifiers; ++i) {
    threads.emplace_back([&] {
      for (int at = 0; at < kRounds * kEnded; ++at) {
        v1::VerifyIterationRequest request;
        request.set_name(ended[at % kEnded] + "/iterations/0");
        const absl::StatusOr<v1::VerifyIterationResponse> planned = world->Verify(request);
        ASSERT_TRUE(planned.ok()) << planned.status();
        const std::lock_guard lock(mutex);
        promised[at % kEnded].insert(ParseTrialName(planned->trial())->number);
      }
    });
  }
  for (int i = 0; i < kSubmitters; ++i) {
    threads.emplace_back([&, i] {
      for (int at = 0; at < kSubmissions; ++at) {
        const std::string name = world.Submit({}, TinyBundleCalled(std::to_string(i) + " " + std::to_string(at)));
        const auto follower = std::make_shared<Follower>(world.store(), name);
        world.hub().Add(*ParseCampaignName(name), follower);
        const std::lock_guard lock(mutex);
        followers.push_back(follower);
        submitted.push_back(name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& campaign : submitted) {
    while (!world.Get(campaign).has_end_time()) std::this_thread::yield();
  }
  for (const std::string& campaign : ended) {
    while (world.Get(campaign).verifying()) std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : serving) thread.join();

  EXPECT_EQ(submitted.size(), size_t{kSubmitters * kSubmissions});
  for (const std::string& campaign : submitted) EXPECT_EQ(world.Iterations(campaign).size(), 5u);
  for (int i = 0; i < kEnded; ++i) {
    EXPECT_GT(promised[i].size(), 0u);
    EXPECT_EQ(followers[i]->verified(), promised[i]) << "each verification that was promised was seen to end, once";
  }
}

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
