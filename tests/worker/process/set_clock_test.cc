// Deadlines while somebody sets the machine's clock.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/sync/steady_time.h"
#include "gtest/gtest.h"
#include "pawl/v1/builder.pb.h"
#include "worker/process/child_process.h"
#include "worker/process/subprocess.h"

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

constexpr time_t kHours = 3 * 3600;

// Sets the clock while something waits, and back at the end.
class ClockSetter {
 public:
  explicit ClockSetter(time_t offset) {
    thread_ = std::thread([offset] {
      absl::SleepFor(absl::Milliseconds(200));
      clock_offset = offset;
    });
  }
  ~ClockSetter() {
    thread_.join();
    clock_offset = 0;
  }

 private:
  std::thread thread_;
};

ProcessOptions Sleep(const std::string& seconds, absl::Duration timeout) {
  ProcessOptions options;
  options.argv = {"sleep", seconds};
  options.timeout = timeout;
  return options;
}

absl::Status AskOneThatHangs(absl::Duration patience, const Stopped& stopped) {
  ChildOptions options;
  options.argv = {std::filesystem::read_symlink("/proc/self/exe").parent_path() / "pawl-test-child"};
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  v1::BuildRequest request;
  request.set_name("hang");
  v1::BuildReply reply;
  const SteadyTime deadline = SteadyNow() + patience;
  if (absl::Status sent = (*child)->Send(request, deadline); !sent.ok()) return sent;
  return (*child)->Receive(&reply, deadline, stopped);
}

TEST(SetClock, IsWhatTheTestSets) {
  const absl::Time before = absl::Now();
  const SteadyTime steady = SteadyNow();
  clock_offset = kHours;
  EXPECT_GT(absl::Now() - before, absl::Hours(2));
  EXPECT_LT(SteadyNow() - steady, absl::Minutes(1));
  clock_offset = 0;
}

TEST(SetClock, ForwardEndsNoProgramBeforeItsDeadline) {
  const ClockSetter setter(kHours);
  const absl::StatusOr<ProcessResult> result = RunProcess(Sleep("1", absl::Minutes(1)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << EndText(*result);
  EXPECT_LT(result->seconds, 30);
}

TEST(SetClock, BackGivesNoProgramMoreTime) {
  const ClockSetter setter(-kHours);
  const absl::StatusOr<ProcessResult> result = RunProcess(Sleep("20", absl::Seconds(1)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->timed_out);
  EXPECT_GT(result->seconds, 0.9);
}

TEST(SetClock, ForwardEndsNoAnswerOfAChildBeforeItsDeadline) {
  const ClockSetter setter(kHours);
  const SteadyTime begin = SteadyNow();
  const Stopped after_a_second = [begin] { return SteadyNow() - begin > absl::Seconds(1); };
  EXPECT_TRUE(absl::IsCancelled(AskOneThatHangs(absl::Minutes(1), after_a_second)));
}

TEST(SetClock, BackGivesNoChildMoreTime) {
  const ClockSetter setter(-kHours);
  const SteadyTime begin = SteadyNow();
  const Stopped much_later = [begin] { return SteadyNow() - begin > absl::Seconds(20); };
  EXPECT_TRUE(absl::IsDeadlineExceeded(AskOneThatHangs(absl::Seconds(1), much_later)));
}

}  // namespace
}  // namespace pawl
