#include "worker/process/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

ProcessOptions Shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.timeout = absl::Seconds(30);
  return options;
}

ProcessResult Finished(const ProcessOptions& options) {
  absl::StatusOr<ProcessResult> result = RunProcess(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(ProcessResult{});
}

TEST(Subprocess, ReportsOutputExitCodeAndTime) {
  const ProcessResult result = Finished(Shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.ok());
  EXPECT_GT(result.seconds, 0);
  EXPECT_EQ(EndText(result), "exited with code 3");
}

TEST(Subprocess, ReportsTheSignalAProgramDiedOf) {
  const ProcessResult result = Finished(Shell("kill -SEGV $$"));
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(EndText(result), "died of signal 11 (Segmentation fault)");
}

TEST(Subprocess, SaysThatAProgramIsMissing) {
  ProcessOptions options;
  options.argv = {"pawl-no-such-program"};
  const absl::StatusOr<ProcessResult> by_name = RunProcess(options);
  EXPECT_TRUE(absl::IsNotFound(by_name.status()));
  EXPECT_NE(by_name.status().message().find("pawl-no-such-program"), absl::string_view::npos);
  options.argv = {"/no/such/program"};
  EXPECT_TRUE(absl::IsNotFound(RunProcess(options).status()));
  options.argv = {"/bin/true"};
  options.directory = "/no/such/folder";
  EXPECT_TRUE(absl::IsNotFound(RunProcess(options).status()));
}

TEST(Subprocess, HandsArgumentsOnWithoutAShell) {
  ProcessOptions options;
  options.argv = {"printf", "%s|", "$HOME; echo x", "*", ""};
  EXPECT_EQ(Finished(options).out, "$HOME; echo x|*||");
}

TEST(Subprocess, FeedsMoreInputThanAPipeHoldsWhileReadingTheOutput) {
  ProcessOptions options;
  options.argv = {"cat"};
  options.input = std::string(1 << 20, 'x');
  EXPECT_EQ(Finished(options).out, options.input);
}

TEST(Subprocess, OutlivesAProgramThatDoesNotReadItsInput) {
  ProcessOptions options;
  options.argv = {"true"};
  options.input = std::string(1 << 20, 'x');
  EXPECT_TRUE(Finished(options).ok());
}

TEST(Subprocess, AddsToTheEnvironmentAndChangesTheFolder) {
  ProcessOptions options = Shell("echo $PAWL_TEST_VALUE; pwd; test -n \"$PATH\"");
  options.env = {{"PAWL_TEST_VALUE", "a b"}};
  options.directory = "/usr";
  const ProcessResult result = Finished(options);
  EXPECT_EQ(result.out, "a b\n/usr\n");
  EXPECT_TRUE(result.ok());
}

TEST(Subprocess, KeepsTheBeginningOfTooMuchOutputAndLetsTheProgramFinish) {
  ProcessOptions options = Shell("head -c 3000000 /dev/zero; echo done >&2");
  options.output_cap = 1000;
  const ProcessResult result = Finished(options);
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.out.size(), 1000);
  EXPECT_EQ(result.err, "done\n");
  EXPECT_TRUE(result.ok());
}

TEST(Subprocess, EndsAProgramAtItsDeadlineHoweverMuchItWrites) {
  ProcessOptions options = Shell("exec cat /dev/zero");
  options.timeout = absl::Milliseconds(200);
  options.output_cap = 1000;
  const ProcessResult result = Finished(options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
}

// As a subreaper this process inherits what a dead child leaves behind, and can see how that ended. The rest of the
// family is reaped too.
int EndOfOrphan(const std::string& pid_text) {
  pid_t pid = 0;
  EXPECT_TRUE(absl::SimpleAtoi(pid_text, &pid)) << pid_text;
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Subprocess, KillsTheWholeGroupAtTheDeadline) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ProcessOptions options = Shell("(trap '' TERM; sh -c 'echo $PPID'; exec sleep 100) & sleep 100");
  options.timeout = absl::Seconds(1);
  const ProcessResult result = Finished(options);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_LT(result.seconds, 20);
  EXPECT_EQ(EndOfOrphan(result.out), SIGKILL);
}

TEST(Subprocess, KillsTheWholeGroupAtOnceWhenItIsNoLongerWanted) {
  ProcessOptions options = Shell("trap '' TERM; sleep 100 & sleep 100");
  const absl::Time begin = absl::Now();
  options.stopped = [&] { return absl::Now() - begin > absl::Milliseconds(150); };
  EXPECT_TRUE(absl::IsCancelled(RunProcess(options).status()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST(Subprocess, LeavesNothingOfItsGroupBehindWhenAProgramEnds) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const ProcessResult result = Finished(Shell("sleep 100 & echo $!"));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_TRUE(result.ok());
  EXPECT_LT(result.seconds, 20);
  EXPECT_EQ(EndOfOrphan(result.out), SIGKILL);
}

TEST(Subprocess, DoesNotWaitForOneThatLeftTheGroupWithThePipes) {
  const ProcessResult result =
      Finished(Shell("exec 3>&1; pid=$(setsid sh -c 'echo $$; exec sleep 100 >&3' &); echo $pid"));
  EXPECT_TRUE(result.ok());
  EXPECT_LT(result.seconds, 50);
  pid_t left = 0;
  ASSERT_TRUE(absl::SimpleAtoi(result.out, &left)) << result.out;
  EXPECT_EQ(kill(left, SIGKILL), 0);  // it had indeed got away
}

TEST(Subprocess, KillsAProgramThatIgnoresTheTermSignal) {
  ProcessOptions options = Shell("trap '' TERM; while :; do sleep 100; done");
  options.timeout = absl::Milliseconds(200);
  options.grace = absl::Milliseconds(200);
  const ProcessResult result = Finished(options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
}

TEST(Subprocess, LetsAProgramEndInItsOwnWayAtTheDeadline) {
  ProcessOptions options = Shell("trap 'echo cleaned; exit 7' TERM; while :; do sleep 0.05; done");
  options.timeout = absl::Milliseconds(500);
  options.grace = absl::Seconds(20);
  const ProcessResult result = Finished(options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.out, "cleaned\n");
}

TEST(Subprocess, HandsOnNoDescriptorsButTheStandardOnes) {
  ASSERT_EQ(dup2(0, 50), 50);  // without O_CLOEXEC
  const ProcessResult result = Finished(Shell("test -e /proc/$$/fd/2 && echo 2; test -e /proc/$$/fd/50 && echo 50"));
  close(50);
  EXPECT_EQ(result.out, "2\n");
}

TEST(Subprocess, StartsProgramsWithDefaultSignalHandling) {
  const sighandler_t before = signal(SIGPIPE, SIG_IGN);
  const ProcessResult result = Finished(Shell("kill -PIPE $$; echo survived"));
  signal(SIGPIPE, before);
  EXPECT_EQ(result.signal, SIGPIPE);
  EXPECT_EQ(result.out, "");
}

TEST(Subprocess, RunsManySideBySideAndLeavesNoZombies) {
  std::vector<std::thread> threads;
  std::vector<std::string> outs(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i, &outs] { outs[i] = Finished(Shell("echo " + std::to_string(i))).out; });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(outs[i], std::to_string(i) + "\n");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Spawn, MapsDescriptorsEvenWhereTheirNumbersCross) {
  int first[2], second[2];
  ASSERT_EQ(pipe2(first, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(second, O_CLOEXEC), 0);
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "echo a >&$0; echo b >&$1", std::to_string(second[1]), std::to_string(first[1])};
  // Each under the other's number; dash takes one digit only.
  ASSERT_LT(second[1], 10);
  options.fds = {{0, 0}, {1, 1}, {2, 2}, {first[1], second[1]}, {second[1], first[1]}};
  const absl::StatusOr<pid_t> pid = Spawn(options);
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_EQ(Reap(*pid).exit_code, 0);
  char text[3] = {};
  EXPECT_EQ(read(first[0], text, 2), 2);
  EXPECT_STREQ(text, "a\n");
  EXPECT_EQ(read(second[0], text, 2), 2);
  EXPECT_STREQ(text, "b\n");
  for (int fd : {first[0], first[1], second[0], second[1]}) close(fd);
}

TEST(Spawn, GivesAProgramNothingButTheEnvironmentItIsTold) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  SpawnOptions options;
  options.argv = {"/usr/bin/env"};
  options.env = {{"ONLY", "this"}};
  options.clear_env = true;
  options.fds = {{0, 0}, {out[1], 1}, {2, 2}};
  const absl::StatusOr<pid_t> pid = Spawn(options);
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_EQ(Reap(*pid).exit_code, 0);
  char text[4096] = {};
  EXPECT_EQ(read(out[0], text, sizeof(text) - 1), 10);
  EXPECT_STREQ(text, "ONLY=this\n");
  close(out[0]);
  close(out[1]);
}

}  // namespace
}  // namespace pawl
