#include "worker/process/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/sync/steady_time.h"
#include "pawl/v1/builder.pb.h"

namespace pawl {
namespace {

SteadyTime Soon() { return SteadyNow() + absl::Milliseconds(100); }
SteadyTime Late() { return SteadyNow() + absl::Seconds(60); }

ChildOptions Program() {
  ChildOptions options;
  options.argv = {std::filesystem::read_symlink("/proc/self/exe").parent_path() / "pawl-test-child"};
  return options;
}

std::unique_ptr<ChildProcess> Start(const ChildOptions& options = Program()) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options);
  EXPECT_TRUE(child.ok()) << child.status();
  return child.ok() ? *std::move(child) : nullptr;
}

absl::StatusOr<std::string> Ask(ChildProcess& child, const std::string& name, const std::string& source = "",
                                SteadyTime deadline = Late()) {
  v1::BuildRequest request;
  request.set_name(name);
  request.set_source(source);
  v1::BuildReply reply;
  absl::Status status = child.Send(request, deadline);
  if (status.ok()) status = child.Receive(&reply, deadline);
  if (!status.ok()) return status;
  return reply.log();
}

TEST(ChildProcess, AnswersOneRequestAfterAnother) {
  const auto child = Start();
  EXPECT_EQ(Ask(*child, "echo", "one").value(), "one");
  EXPECT_EQ(Ask(*child, "echo", std::string(1 << 20, 'x')).value(), std::string(1 << 20, 'x'));
  EXPECT_TRUE(child->alive());
  EXPECT_FALSE(child->end().has_value());
}

TEST(ChildProcess, SaysHowAChildDiedAndItsLastWords) {
  const auto child = Start();
  const absl::Status status = Ask(*child, "die").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "pawl-test-child died of signal 6")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "last words")) << status;
  EXPECT_FALSE(child->alive());
  EXPECT_EQ(child->end()->signal, SIGABRT);
  EXPECT_FALSE(Ask(*child, "echo").ok());
}

TEST(ChildProcess, SaysWithWhichCodeAChildEnded) {
  const auto child = Start();
  EXPECT_TRUE(absl::StrContains(Ask(*child, "exit").status().message(), "exited with code 5"));
  EXPECT_EQ(child->end()->exit_code, 5);
}

TEST(ChildProcess, IsNotHeldUpByAChattyChildAndKeepsTheEndOfWhatItSaid) {
  const auto child = Start();
  EXPECT_TRUE(Ask(*child, "chatter").ok());
  EXPECT_TRUE(absl::IsUnavailable(Ask(*child, "exit").status()));
  EXPECT_TRUE(absl::EndsWith(child->stderr_tail(), "line 99999 of many\n"));
  EXPECT_EQ(child->stderr_tail().size(), 8192);
}

TEST(ChildProcess, LeavesAChildThatOverrunsTheDeadlineToItsOwner) {
  const auto child = Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Ask(*child, "hang", "", Soon()).status()));
  EXPECT_TRUE(child->alive());
  child->Kill();
  EXPECT_FALSE(child->alive());
  EXPECT_EQ(child->end()->signal, SIGKILL);
}

TEST(ChildProcess, EndsAChildThatPrintsAmongItsReplies) {
  const auto child = Start();
  EXPECT_EQ(Ask(*child, "print").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(child->alive());
}

TEST(ChildProcess, EndsAChildThatClosesItsPipeAndGoesOn) {
  const auto child = Start();
  EXPECT_TRUE(absl::IsUnavailable(Ask(*child, "close").status()));
  EXPECT_FALSE(child->alive());
}

TEST(ChildProcess, MayBeKilledFromAnotherThreadWhileOneWaits) {
  const auto child = Start();
  std::thread killer([&] { child->Kill(); });
  EXPECT_FALSE(Ask(*child, "hang").ok());
  killer.join();
}

TEST(ChildProcess, OutlivesTheThreadThatStartedIt) {
  std::unique_ptr<ChildProcess> child;
  std::thread([&] { child = Start(); }).join();
  EXPECT_EQ(Ask(*child, "echo", "still here").value(), "still here");
}

TEST(ChildProcess, InheritsDescriptorsUnderTheNumbersGiven) {
  absl::StatusOr<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  ChildOptions options = Program();
  options.fds = {{pipe->write.get(), 5}};
  const auto child = Start(options);
  ASSERT_TRUE(Ask(*child, "write to 5").ok());
  char text[6] = {};
  EXPECT_EQ(read(pipe->read.get(), text, 5), 5);
  EXPECT_STREQ(text, "hello");
}

TEST(ChildProcess, SeesOnlyTheEnvironmentItIsGiven) {
  setenv("PAWL_TEST_SECRET", "s3cret", 1);
  ChildOptions options = Program();
  EXPECT_EQ(Ask(*Start(options), "environment", "PAWL_TEST_SECRET").value(), "s3cret");
  options.clear_env = true;
  options.env = {{"GIVEN", "yes"}};
  const auto child = Start(options);
  EXPECT_EQ(Ask(*child, "environment", "PAWL_TEST_SECRET").value(), "unset");
  EXPECT_EQ(Ask(*child, "environment", "GIVEN").value(), "yes");
  unsetenv("PAWL_TEST_SECRET");
}

TEST(ChildProcess, DiesWithItsOwner) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the orphan's end is seen here
  const auto owner = Start();
  pid_t owned = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Ask(*owner, "own a child").value(), &owned));
  ASSERT_EQ(kill(owned, 0), 0);
  kill(owner->pid(), SIGKILL);  // the owner alone: what it owns is in a group of its own
  EXPECT_FALSE(Ask(*owner, "echo").ok());
  int status = 0;
  EXPECT_EQ(waitpid(owned, &status, 0), owned);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ChildProcess, IsKilledWithItsObject) {
  auto child = Start();
  ASSERT_TRUE(Ask(*child, "echo").ok());
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, SaysThatAProgramIsMissing) {
  ChildOptions options;
  options.argv = {"/no/such/program"};
  EXPECT_TRUE(absl::IsNotFound(ChildProcess::Start(options).status()));
}

}  // namespace
}  // namespace pawl
