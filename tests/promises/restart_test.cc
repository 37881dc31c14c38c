// Promise 6: a restarted orchestrator serves within 5 s, adopts live leases, and repeats no decision.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "db/store.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

constexpr char kWorker[] = "workers/a";

class RestartTest : public testing::Test {
 protected:
  struct Place {
    TemporaryFolder folder{"pawl-restart-"};
    std::string database = (folder.path() / "pawl.db").string();
    std::string address = "unix:" + (folder.path() / "socket").string();
  };

  static std::unique_ptr<Daemon> Start(const Place& place) {
    return std::make_unique<Daemon>(
        "pawl-orchestrator",
        std::vector<std::string>{"--listen", place.address, "--database", place.database, "--log-level", "error"});
  }

  static void SubmitAll(Client& client, int campaigns) {
    for (int i = 0; i < campaigns; ++i) client.Submit(TinyBundle());
    ASSERT_TRUE(client.Register(kWorker).ok());
  }

  // So many trials, in the order in which they are offered.
  static int Work(Client& client, int trials) {
    int done = 0;
    for (; done < trials; ++done) {
      v1::LeaseTrialResponse leased;
      EXPECT_TRUE(client.Lease(kWorker, 0, &leased).ok());
      if (!leased.has_trial()) break;
      const grpc::Status completed = client.Complete(kWorker, leased);
      EXPECT_TRUE(completed.ok()) << completed.error_message();
    }
    return done;
  }

  // What was decided, campaign by campaign: each plan, and how it ended. Fails where something was decided twice.
  static std::map<int64_t, std::vector<std::string>> Decisions(const Place& place, int campaigns) {
    std::map<int64_t, std::vector<std::string>> decisions;
    const auto store = Store::Open({.file = place.database}).value();
    for (int64_t number = 1; number <= campaigns; ++number) {
      std::set<int> trials, iterations;
      const std::vector<v1::Event> events = store->Events(number, 0, 100'000).value();
      for (const v1::Event& event : events) {
        if (event.has_planned()) {
          EXPECT_TRUE(trials.insert(event.planned().trial()).second) << "planned twice";
          const bool total = event.planned().purpose() == v1::TRIAL_PURPOSE_TOTAL;
          EXPECT_TRUE(total || iterations.insert(event.planned().iteration()).second) << "planned twice";
          const v1::Change& change = event.planned().change();
          decisions[number].push_back(
              absl::StrCat(event.planned().iteration(), " ", change.variable(), " ", change.to()));
        }
        if (event.has_ended()) decisions[number].push_back(v1::StopReason_Name(event.ended().reason()));
      }
    }
    return decisions;
  }
};

TEST_F(RestartTest, GoesOnWhereItWas) {
  const int restarts = SoakCount(6, 50), campaigns = SoakCount(20, 200), held = 5;
  const Place place;
  std::unique_ptr<Daemon> orchestrator = Start(place);
  Client client(place.address);
  SubmitAll(client, campaigns);
  // Those that a worker has in hand all the time.
  std::vector<v1::LeaseTrialResponse> leases(held);
  for (v1::LeaseTrialResponse& lease : leases) {
    ASSERT_TRUE(client.Lease(kWorker, 0, &lease).ok());
    ASSERT_TRUE(lease.has_trial());
  }
  absl::Duration slowest;
  int done = 0;
  for (int i = 0; i < restarts; ++i) {
    done += Work(client, 3 + i % 3);
    // By force, or asked twice, since leases are out.
    orchestrator->Signal(i % 2 == 0 ? SIGKILL : SIGTERM);
    if (orchestrator->WaitForEnd(std::chrono::milliseconds(100)) == -1) {
      orchestrator->Signal(SIGTERM);
      ASSERT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(10)), 0);
    }
    const absl::Time begin = absl::Now();
    orchestrator = Start(place);
    // The first call may still meet the connection that the kill broke.
    v1::GetCampaignRequest get;
    get.set_name("campaigns/1");
    v1::Campaign campaign;
    EXPECT_TRUE(Client::Until(std::chrono::seconds(60), [&] {
      return Client::Call(client.campaigns(), &Client::Campaigns::GetCampaign, get, &campaign).ok();
    })) << orchestrator->Output();
    const absl::Duration served = absl::Now() - begin;
    EXPECT_LT(served, kSlowdown * absl::Seconds(5)) << orchestrator->Output();
    slowest = std::max(slowest, served);
    for (const v1::LeaseTrialResponse& lease : leases) {
      const grpc::Status renewed = client.Renew(kWorker, lease.lease());
      EXPECT_TRUE(renewed.ok()) << renewed.error_message() << ": a live lease is adopted";
    }
  }
  for (const v1::LeaseTrialResponse& lease : leases) {
    EXPECT_TRUE(client.Complete(kWorker, lease).ok()) << "the result of before is taken";
    ++done;
  }
  done += Work(client, 1'000'000);
  orchestrator->Signal(SIGKILL);
  orchestrator.reset();

  // The same without a restart.
  const Place calm;
  orchestrator = Start(calm);
  Client other(calm.address);
  SubmitAll(other, campaigns);
  EXPECT_EQ(Work(other, 1'000'000), done);
  orchestrator->Signal(SIGKILL);
  orchestrator.reset();
  const auto decided = Decisions(place, campaigns);
  EXPECT_EQ(decided, Decisions(calm, campaigns));
  EXPECT_EQ(decided.size(), static_cast<size_t>(campaigns));
  int decisions = 0;
  for (const auto& [number, each] : decided) decisions += static_cast<int>(each.size());
  ReportPromise(6, absl::StrFormat("%d restarts with %d campaigns: the slowest served after %.2f s, %d leases kept all "
                                   "through, %d decisions as without restarts",
                                   restarts, campaigns, absl::ToDoubleSeconds(slowest), held, decisions));
}

}  // namespace
}  // namespace pawl
