// Following a campaign while somebody sets the machine's clock.
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "cli/follow/watching.h"
#include "cli/text/failure.h"
#include "gtest/gtest.h"
#include "tests/cli/fake_orchestrator.h"

namespace {

std::atomic<time_t> clock_offset = 0;  // s

}  // namespace

// What this program and its libraries call: the time of day is as it was set.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long code = syscall(SYS_clock_gettime, clock, now);
  if (code == 0 && clock == CLOCK_REALTIME) now->tv_sec += clock_offset;
  return static_cast<int>(code);
}

namespace pawl {
namespace {

TEST(ClockSet, ForwardEndsNoWaitForAWorker) {
  FakeOrchestrator fake;
  fake.campaign.set_state(v1::WAITING);
  fake.campaign.set_message("no worker is registered");
  fake.watch_stays_open = true;
  Settings settings;
  settings.orchestrator = fake.address();
  const absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings, Need::kRunning);
  ASSERT_TRUE(connection.ok()) << connection.status();
  WatchingOptions options;
  options.printer.quiet = true;
  options.worker_patience = absl::Minutes(10);
  std::thread setter([&fake] {
    absl::SleepFor(absl::Milliseconds(800));
    clock_offset = 3 * 3600;
    absl::SleepFor(absl::Milliseconds(3500));  // absl::Now may look at the clock every other second only
    kill(getpid(), SIGINT);                    // Ctrl-C, once it had time to look again
    fake.watch_stays_open = false;             // gRPC waits by the clock that only this program takes for set
  });
  const absl::StatusOr<int> code = WatchToTheEnd(**connection, "campaigns/7", options);
  setter.join();
  clock_offset = 0;
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, kInterrupted) << "the worker has ten minutes";
}

}  // namespace
}  // namespace pawl
