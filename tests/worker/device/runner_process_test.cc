#include "worker/device/runner_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RunnerProcessTest : public testing::Test {
 protected:
  RunnerProcess::Options Options() const {
    return {.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "pawl-fake-runner",
            .device = 2,
            .shared_fd = shared_.get(),
            .support_cubin = "support"};
  }

  absl::StatusOr<v1::RunnerReply> Call(const std::string& what, absl::Duration deadline = absl::Seconds(60)) {
    v1::RunnerRequest request;
    request.mutable_call()->set_module(what);
    return runner_.Ask(request, deadline);
  }

  v1::RunnerReply Load(const std::string& id, const std::string& cubin = "cubin") {
    absl::StatusOr<v1::RunnerReply> reply = runner_.Load(id, cubin, {});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::RunnerReply();
  }

  bool IsLoaded(const std::string& id) { return Call(id).value().has_call(); }

  // Loads and unloads that the process there is now was asked for.
  std::vector<std::string> History() {
    const v1::RunnerReply reply = Call("history").value();
    return {reply.call().outputs().begin(), reply.call().outputs().end()};
  }

  const Fd shared_{memfd_create("shared", MFD_CLOEXEC)};
  RunnerProcess runner_{Options()};
};

TEST_F(RunnerProcessTest, OpensTheGpuOnceAndSaysWhatItIs) {
  EXPECT_EQ(runner_.pid(), 0);
  ASSERT_TRUE(runner_.Open().ok());
  const pid_t pid = runner_.pid();
  ASSERT_TRUE(runner_.Open().ok());
  EXPECT_EQ(runner_.pid(), pid);
  EXPECT_EQ(runner_.gpu().name(), "GPU 2");
  EXPECT_EQ(runner_.gpu().uuid(), "support");
}

// The reference process gets a bundle's files after the candidate's outputs were set aside.
TEST_F(RunnerProcessTest, HandsOverAFileWithoutTouchingWhatLiesInSharedMemory) {
  ASSERT_EQ(pwrite(shared_.get(), "outputs", 7, 0), 7);
  ASSERT_TRUE(runner_.ProvideFile("data.bin", "content").ok());
  EXPECT_THAT(History(), ElementsAre("provide data.bin 0 content"));
  char kept[8] = "";
  EXPECT_EQ(pread(shared_.get(), kept, sizeof(kept), 0), 7) << "what was handed over is gone again";
  EXPECT_STREQ(kept, "outputs");
}

TEST_F(RunnerProcessTest, TheNextProcessIsTheSpareOne) {
  ASSERT_TRUE(runner_.OpenSpare().ok());
  EXPECT_EQ(runner_.gpu().name(), "") << "it has not been waited for";
  EXPECT_EQ(runner_.pid(), 0) << "nothing was asked";
  const pid_t spare = runner_.spare_pid();
  EXPECT_TRUE(Load("a").has_load());
  const pid_t first = runner_.pid();
  EXPECT_EQ(first, spare);
  EXPECT_EQ(runner_.gpu().name(), "GPU 2");
  ASSERT_TRUE(runner_.OpenSpare().ok());
  const pid_t next = runner_.spare_pid();
  runner_.Settle();
  EXPECT_TRUE(IsLoaded("a"));
  EXPECT_EQ(runner_.pid(), first) << "it is only used once there is none";
  runner_.Restart();
  ASSERT_TRUE(runner_.Open().ok());
  EXPECT_EQ(runner_.pid(), next);
  EXPECT_THAT(History(), IsEmpty());
  ASSERT_TRUE(runner_.OpenSpare().ok());
  ASSERT_TRUE(runner_.SetSupportCubin("newer").ok());
  runner_.Restart();
  ASSERT_TRUE(runner_.Open().ok());
  EXPECT_EQ(runner_.gpu().uuid(), "newer") << "a spare one without the new kernels is not used";
  runner_.Restart();
  const double busy = runner_.busy_seconds();
  ASSERT_TRUE(runner_.OpenSpare().ok());
  runner_.Settle();
  EXPECT_EQ(runner_.busy_seconds(), busy + 0.25) << "opening counts";
}

TEST_F(RunnerProcessTest, ASpareProcessThatDiedOrSawAFaultIsReplaced) {
  ASSERT_TRUE(runner_.Open().ok());
  for (const bool dies : {true, false}) {
    ASSERT_TRUE(runner_.OpenSpare().ok());
    const pid_t spare = runner_.spare_pid();
    ASSERT_TRUE(runner_.OpenSpare().ok());
    EXPECT_EQ(runner_.spare_pid(), spare) << "one is enough";
    if (dies) {
      ASSERT_EQ(kill(spare, SIGKILL), 0);
      siginfo_t info;
      ASSERT_EQ(waitid(P_PID, spare, &info, WEXITED | WNOWAIT), 0);
      runner_.Settle();
      runner_.Restart();
    } else {
      ASSERT_TRUE(Call("die")->context_lost());
    }
    ASSERT_TRUE(runner_.Open().ok());
    EXPECT_NE(runner_.pid(), spare);
    EXPECT_EQ(runner_.spare_pid(), 0);
    EXPECT_TRUE(Load("module").has_load());
    EXPECT_EQ(kill(spare, 0), -1) << "it is gone";
  }
}

TEST_F(RunnerProcessTest, EndsASpareProcessThatNobodyNeeds) {
  ASSERT_TRUE(runner_.OpenSpare().ok());
  const pid_t spare = runner_.spare_pid();
  runner_.EndSpare();
  EXPECT_EQ(kill(spare, 0), -1);
  ASSERT_TRUE(runner_.Open().ok());
  EXPECT_NE(runner_.pid(), spare);
}

TEST_F(RunnerProcessTest, ASpareProcessThatCanNotOpenTheGpuSaysNothing) {
  RunnerProcess::Options options = Options();
  options.device = 7;
  RunnerProcess runner(options);
  ASSERT_TRUE(runner.OpenSpare().ok());
  runner.Settle();
  EXPECT_THAT(std::string(runner.Open().message()), HasSubstr("there is no such GPU"))
      << "the request that needs a process returns the error";
}

TEST_F(RunnerProcessTest, KnowsWhichEntriesItsProcessHas) {
  const auto provide = [&](const std::string& pool, uint32_t entry, bool drop = false) {
    v1::ProvideRequest request;
    request.set_pool(pool);
    request.set_entry(entry);
    request.set_drop(drop);
    return runner_.Provide(request);
  };
  EXPECT_FALSE(runner_.HasEntry("timed", 0));
  ASSERT_TRUE(provide("timed", 0).ok());
  ASSERT_TRUE(provide("timed", 3).ok());
  ASSERT_TRUE(provide("fresh", 1).ok());
  EXPECT_TRUE(runner_.HasEntry("timed", 3));
  EXPECT_FALSE(runner_.HasEntry("timed", 1));
  EXPECT_TRUE(provide("too large", 0)->has_failure());
  EXPECT_FALSE(runner_.HasEntry("too large", 0));
  ASSERT_TRUE(provide("fresh", 0, /*drop=*/true).ok());
  ASSERT_TRUE(provide("never there", 0, /*drop=*/true).ok());
  EXPECT_FALSE(runner_.HasEntry("fresh", 1));
  EXPECT_THAT(History(), ElementsAre("provide timed 0", "provide timed 3", "provide fresh 1", "provide too large 0",
                                     "drop fresh 0"));
  runner_.UnloadAll();
  EXPECT_FALSE(runner_.HasEntry("timed", 0));
  ASSERT_TRUE(provide("timed", 0).ok());
  ASSERT_TRUE(Call("die").ok());
  EXPECT_FALSE(runner_.HasEntry("timed", 0)) << "a fresh process has none";
}

TEST_F(RunnerProcessTest, GivesALaterSupportCubinToThisAndAllLaterProcesses) {
  ASSERT_TRUE(runner_.Open().ok());
  const pid_t pid = runner_.pid();
  ASSERT_TRUE(runner_.SetSupportCubin("newer").ok());
  EXPECT_EQ(runner_.gpu().uuid(), "newer");
  EXPECT_EQ(runner_.pid(), pid);
  runner_.Restart();
  ASSERT_TRUE(runner_.SetSupportCubin("newest").ok());
  EXPECT_EQ(runner_.pid(), 0);
  ASSERT_TRUE(runner_.Open().ok());
  EXPECT_EQ(runner_.gpu().uuid(), "newest");
}

TEST_F(RunnerProcessTest, SaysWhichGpuCouldNotBeOpened) {
  RunnerProcess::Options options = Options();
  options.device = 7;
  RunnerProcess runner(options);
  EXPECT_THAT(std::string(runner.Open().message()), AllOf(HasSubstr("cuda:7"), HasSubstr("there is no such GPU")));
  EXPECT_FALSE(runner.Load("module", "cubin", {}).ok());
}

TEST_F(RunnerProcessTest, SharesItsMemoryWithTheRunner) {
  ASSERT_TRUE(Call("write to shared memory").ok());
  char text[6] = {};
  EXPECT_EQ(pread(shared_.get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
}

TEST_F(RunnerProcessTest, TurnsAHangIntoATimeoutAndGoesOnInAFreshProcess) {
  Load("module");
  const pid_t pid = runner_.pid();
  const absl::StatusOr<v1::RunnerReply> reply = Call("hang", absl::Milliseconds(100));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->failure().check(), v1::CHECK_TIMEOUT);
  EXPECT_THAT(reply->failure().message(), HasSubstr("100ms"));
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_THAT(History(), IsEmpty());
  EXPECT_NE(runner_.pid(), pid);
}

TEST_F(RunnerProcessTest, KillsWhatIsNoLongerWantedAndGoesOnInAFreshProcess) {
  Load("module");
  const pid_t pid = runner_.pid();
  const absl::Time begin = absl::Now();
  runner_.StopWhen([&] { return absl::Now() - begin > absl::Milliseconds(150); });
  EXPECT_TRUE(absl::IsCancelled(Call("hang").status()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  EXPECT_EQ(kill(pid, 0), -1);
  runner_.StopWhen(nullptr);
  EXPECT_THAT(History(), IsEmpty());
  EXPECT_NE(runner_.pid(), pid);
}

TEST_F(RunnerProcessTest, TurnsTheRunnersDeathIntoAFaultAndGoesOnInAFreshProcess) {
  Load("module");
  const absl::StatusOr<v1::RunnerReply> reply = Call("die");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->failure().check(), v1::CHECK_FAULT);
  EXPECT_THAT(reply->failure().message(), AllOf(HasSubstr("died of signal 6"), HasSubstr("last words")));
  EXPECT_TRUE(reply->context_lost());
  EXPECT_THAT(History(), IsEmpty());
}

TEST_F(RunnerProcessTest, LeavesAProcessWhoseContextIsLost) {
  Load("module");
  const pid_t pid = runner_.pid();
  const absl::StatusOr<v1::RunnerReply> reply = Call("lose the context");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->failure().message(), "illegal address");
  EXPECT_THAT(History(), IsEmpty());
  EXPECT_NE(runner_.pid(), pid);
}

TEST_F(RunnerProcessTest, ReplacesAProcessThatEndedWhileNobodyAsked) {
  Load("module");
  const pid_t pid = runner_.pid();
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Load("module").has_load());
  EXPECT_NE(runner_.pid(), pid);
  EXPECT_THAT(History(), ElementsAre("load module"));
}

TEST_F(RunnerProcessTest, MakesTheMachinesFaultAStatus) {
  const absl::Status status = Call("host error").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "CUDA 214: take this GPU out of service");
}

TEST_F(RunnerProcessTest, MakesAProgramThatIsMissingAStatus) {
  RunnerProcess::Options options = Options();
  options.program = "/no/such/pawl-runner";
  EXPECT_THAT(std::string(RunnerProcess(options).Open().message()), HasSubstr("/no/such/pawl-runner"));
}

TEST_F(RunnerProcessTest, LoadsAModuleOnceAndAgainAfterARestart) {
  for (int i = 0; i < 3; ++i) {
    const v1::RunnerReply reply = Load("module");
    ASSERT_EQ(reply.load().resources_size(), 1);
    EXPECT_EQ(reply.load().resources(0).entry(), "module");
  }
  EXPECT_THAT(History(), ElementsAre("load module"));
  runner_.Restart();
  EXPECT_FALSE(IsLoaded("module"));
  Load("module");
  EXPECT_THAT(History(), ElementsAre("load module"));
  EXPECT_TRUE(IsLoaded("module"));
}

TEST_F(RunnerProcessTest, DoesNotTakeARefusedModuleForLoaded) {
  EXPECT_EQ(Load("module", "").failure().check(), v1::CHECK_ENTRY);
  EXPECT_TRUE(Load("module").has_load());
  EXPECT_THAT(History(), ElementsAre("load module", "load module"));
}

TEST_F(RunnerProcessTest, KeepsParentAndCandidateLoadedHoweverManyThereWere) {
  for (const char* parent : {"a parent", "z parent"}) {  // whichever way the names are sorted
    runner_.Restart();
    for (int i = 0; i < 150; ++i) {
      const std::string candidate = absl::StrCat("candidate ", i);
      Load(parent);
      Load(candidate);
      ASSERT_TRUE(IsLoaded(parent)) << candidate;
      ASSERT_TRUE(IsLoaded(candidate));
    }
    EXPECT_THAT(History(), Not(Contains(absl::StrCat("unload ", parent))));
  }
}

TEST_F(RunnerProcessTest, UnloadsTheModuleThatWasAskedForLongestAgo) {
  for (int i = 0; i < 64; ++i) Load(absl::StrCat("module ", i));
  Load("module 0");
  EXPECT_EQ(History().size(), 64u);
  Load("one more");
  EXPECT_EQ(History()[64], "unload module 1");
  EXPECT_TRUE(IsLoaded("module 0"));
  // What was unloaded is loaded again when it is asked for.
  Load("module 1");
  EXPECT_TRUE(IsLoaded("module 1"));
  EXPECT_FALSE(IsLoaded("module 2"));
}

TEST_F(RunnerProcessTest, UnloadsEverythingAndLoadsAgainWhatIsAskedFor) {
  Load("a");
  Load("b");
  const pid_t pid = runner_.pid();
  runner_.UnloadAll();
  EXPECT_THAT(History(), ElementsAre("load a", "load b", "unload a", "unload b"));
  EXPECT_TRUE(runner_.served_others());
  Load("a");
  EXPECT_TRUE(IsLoaded("a"));
  EXPECT_FALSE(IsLoaded("b"));
  EXPECT_EQ(runner_.pid(), pid);
  ASSERT_TRUE(Call("lose the context").ok());
  Load("a");
  EXPECT_FALSE(runner_.served_others()) << "a fresh process has served none";
}

TEST_F(RunnerProcessTest, StartsNoProcessToUnloadNothing) {
  runner_.UnloadAll();
  EXPECT_EQ(runner_.pid(), 0);
}

TEST_F(RunnerProcessTest, TellsADeathFromAContextThatIsLost) {
  EXPECT_TRUE(Call("die")->runner_died());
  EXPECT_FALSE(Call("lose the context")->runner_died()) << "the candidate's own fault";
}

TEST_F(RunnerProcessTest, CountsTheSecondsOfItsRequestsThroughRestarts) {
  Load("module");
  EXPECT_EQ(runner_.busy_seconds(), 0.5);  // open and load
  runner_.Restart();
  Load("module");
  EXPECT_EQ(runner_.busy_seconds(), 1);
}

}  // namespace
}  // namespace pawl
