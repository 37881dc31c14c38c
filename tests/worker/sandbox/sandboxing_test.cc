#include "worker/sandbox/sandboxing.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/instrumented.h"
#include "tests/worker/sandbox/sandbox_probes.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/sandbox/sandbox_command.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Programs where every user can run them, and a folder to work in.
class SandboxingTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(folder_.path());
    for (const char* name : {"bin", "job", "hidden"}) fs::create_directory(root_ / name);
    const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
    fs::copy_file(tests / "pawl-sandbox-probe", root_ / "bin/probe");
    const fs::path program = FindPawlProgram("pawl-sandbox").value();
    fs::copy_file(program, root_ / "bin/pawl-sandbox");
    const fs::path package = program.parent_path().parent_path();
    if (fs::exists(package / "share/pawl")) fs::copy(package / "lib", root_ / "lib");
    absl::StatusOr<Sandboxing> made = Sandboxing::Make({}, probe(), /*allow_unsandboxed=*/false);
    if (!made.ok()) GTEST_SKIP() << made.status();
    sandboxing_ = *std::move(made);
  }

  std::string probe() const { return root_ / "bin/probe"; }
  std::string job() const { return root_ / "job"; }
  LockIn Tool() const {
    return [this](const std::vector<std::string>& argv) { return sandboxing_.Tool(argv, job()); };
  }
  ProcessResult Run(std::vector<std::string> argv, absl::Duration timeout = absl::Seconds(60)) {
    ProcessOptions options;
    options.argv = std::move(argv);
    options.timeout = timeout;
    options.env = {{"PAWL_TOKEN_FILE", "/secret"}, {"AWS_SECRET_ACCESS_KEY", "secret"}, {"CUDA_VISIBLE_DEVICES", "3"}};
    return RunProcess(options).value();
  }
  ProcessResult Shell(const std::string& script, absl::Duration timeout = absl::Seconds(60)) {
    return Run(sandboxing_.Tool({"/bin/sh", "-c", script}, job()), timeout);
  }

  const TemporaryFolder folder_{"pawl-sandboxing-"};
  fs::path root_;
  Sandboxing sandboxing_;
};

TEST_F(SandboxingTest, DeniesTheTwelveProbes) {
  const SandboxProbes probes(root_ / "hidden", probe());
  probes.ExpectSuccessOutside();
  probes.ExpectAllDenied(Tool(), job());
}

// What `pawl best --output` writes has host code, with a candidate's source in it.
TEST_F(SandboxingTest, DeniesTheTwelveProbesToAHandOff) {
  const SandboxProbes probes(root_ / "hidden", probe());
  const LockIn hand_off = [this](const std::vector<std::string>& argv) {
    return sandboxing_.HandOff(job(), "python3", {root_ / "bin"}, [&](const std::string&) { return argv; });
  };
  probes.ExpectAllDenied(hand_off, job());
}

TEST_F(SandboxingTest, DeniesTheTwelveProbesToARunner) {
  const SandboxProbes probes(root_ / "hidden", probe());
  probes.ExpectAllDenied([this](const auto& argv) { return sandboxing_.Runner(argv, 3); }, "/tmp");
}

TEST_F(SandboxingTest, DeniesTheTwelveProbesToABaseline) {
  const SandboxProbes probes(root_ / "hidden", probe());
  probes.ExpectAllDenied([this](const auto& argv) { return sandboxing_.Baseline(argv, job(), job()); }, job());
}

TEST_F(SandboxingTest, DeniesTheTwelveProbesToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ProcessOptions version;
  version.argv = {"setpriv", "--version"};
  if (!RunProcess(version).ok()) GTEST_SKIP() << "there is no setpriv";
  const uid_t user = 65534;
  chmod(root_.c_str(), 0755);
  ASSERT_EQ(chown(job().c_str(), user, user), 0);
  const SandboxProbes probes(root_ / "hidden", probe());
  const auto as_user = [this](const std::vector<std::string>& argv) {
    std::vector<std::string> words = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    std::vector<std::string> inside = Tool()(argv);
    inside[0] = root_ / "bin/pawl-sandbox";
    words.insert(words.end(), inside.begin(), inside.end());
    return words;
  };
  if (Run(as_user({"/bin/true"})).exit_code == kSandboxFailed) GTEST_SKIP() << "no user namespaces here";
  probes.ExpectAllDenied(as_user, job());
  const ProcessResult inside =
      Run(as_user({"/bin/sh", "-c", "id -u; grep CapEff /proc/self/status; > " + job() + "/x"}));
  EXPECT_THAT(inside.out, AllOf(HasSubstr("65534\n"), HasSubstr("CapEff:\t0000000000000000")));
  EXPECT_TRUE(inside.ok()) << inside.err;
}

// As in a container: root to the kernel, and no right to mount, so that the sandbox is a user namespace of root's.
TEST_F(SandboxingTest, KeepsTheKernelsSettingsFromARootThatMayNotMount) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be one";
  const auto as_root = [this](const std::vector<std::string>& argv) {
    std::vector<std::string> words = {"setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"};
    const std::vector<std::string> inside = sandboxing_.Runner(argv, 3);
    words.insert(words.end(), inside.begin(), inside.end());
    return words;
  };
  if (Run(as_root({"/bin/true"})).exit_code == kSandboxFailed) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(Run(as_root({"/bin/sh", "-c", "id -u"})).out, "0\n") << "or this would try nothing";
  if (!CanBeWrittenTo("/proc/sys") || !CanBeWrittenTo("/sys")) GTEST_SKIP() << "they are kept from root here";
  for (const char* folder : {"/proc", "/sys"}) {
    EXPECT_EQ(Run({probe(), "writable", folder}).exit_code, 1) << folder << " without a sandbox";
    const ProcessResult inside = Run(as_root({probe(), "writable", folder}));
    EXPECT_TRUE(inside.ok()) << EndText(inside) << "; " << inside.out << inside.err;
  }
  EXPECT_EQ(Run({probe(), "kernel pages", ""}).exit_code, fs::exists("/proc/kpageflags") ? 1 : 0);
  EXPECT_TRUE(Run(as_root({probe(), "kernel pages", ""})).ok());
  EXPECT_TRUE(Run(as_root({"/bin/sh", "-c", "echo 7 > /proc/self/oom_score_adj"})).ok()) << "a process's own";
}

TEST_F(SandboxingTest, ClosesDescriptorsThatWereLeftOpen) {
  const std::string file = root_ / "hidden/file";
  std::ofstream(file) << "x";
  const auto run = [&](std::vector<std::string> argv) {
    std::vector<char*> pointers;
    for (std::string& word : argv) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      for (const int fd : {3, 7, 200}) dup2(open(file.c_str(), O_RDONLY), fd);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(run({probe(), "descriptors", ""}), 1) << "they are open without a sandbox";
  EXPECT_EQ(run(sandboxing_.Tool({probe(), "descriptors", ""}, job())), 0);
  EXPECT_EQ(run(sandboxing_.Runner({probe(), "descriptors", ""}, 3)), 1) << "a runner has the one it is given";
}

TEST_F(SandboxingTest, GivesWhatCudaNeeds) {
  const ProcessResult result = Shell(
      "test -r /proc/self/maps && test -d /sys/devices && test -c /dev/null && echo x > /dev/shm/x && echo x > /tmp/x "
      "&& ls /proc | grep -c '^[0-9]'; id -u; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; env");
  EXPECT_TRUE(result.ok()) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("CUDA_VISIBLE_DEVICES=3"), HasSubstr("HOME=/tmp"), HasSubstr("TMPDIR=/tmp"),
                                HasSubstr("NoNewPrivs:\t1"), HasSubstr("CapEff:\t0000000000000000"),
                                HasSubstr("CapBnd:\t0000000000000000"), Not(HasSubstr("secret"))));
  if (geteuid() == 0) {
    EXPECT_THAT(result.out, Not(HasSubstr("\n0\n"))) << "root is somebody else inside";
  }
}

TEST_F(SandboxingTest, LetsToolsWriteWhereTheyAreToldAndNowhereElse) {
  EXPECT_TRUE(Shell("echo report > " + job() + "/report").ok());
  EXPECT_TRUE(Shell("cat " + job() + "/report >> " + job() + "/report2").ok()) << "the next one reads it";
  std::string text;
  std::getline(std::ifstream(job() + "/report2"), text);
  EXPECT_EQ(text, "report");
  for (const char* path : {"/x", "/usr/x", "/dev/x", "/sys/x", "/etc/x", "/proc/sys/kernel/core_pattern"}) {
    EXPECT_FALSE(Shell(absl::StrCat("echo x > ", path)).ok()) << path;
  }
  EXPECT_FALSE(Shell("echo x > " + root_.string() + "/bin/probe").ok());
}

TEST_F(SandboxingTest, GivesToolsALoopbackOfTheirOwn) {
  EXPECT_THAT(Shell("cat /sys/class/net/lo/flags; ls /sys/class/net").out,
              AllOf(HasSubstr("0x9\n"), HasSubstr("lo\n")));
  const ProcessResult runner = Run(sandboxing_.Runner({"/bin/sh", "-c", "cat /sys/class/net/lo/flags"}, 3));
  EXPECT_EQ(runner.out, "0x8\n") << runner.err;
}

// How many processes of this machine have the text in their arguments.
int CountProcesses(const std::string& text) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string arguments((std::istreambuf_iterator<char>(file)), {});
    count += arguments.find(text) != std::string::npos;
  }
  return count;
}

TEST_F(SandboxingTest, EndsEverythingAtTheDeadline) {
  const std::string mark = absl::StrCat("pawl-sandboxing-test-", getpid());
  const std::string loop = absl::StrCat("trap '' TERM; while : ", mark, "; do sleep 0.1; done");
  const absl::Time start = absl::Now();
  const ProcessResult result = Shell(absl::StrCat("setsid sh -c \"", loop, "\" & ", loop), absl::Milliseconds(500));
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(absl::Now() - start, kSlowdown * absl::Seconds(5));
  while (CountProcesses(mark) > 0 && absl::Now() < start + absl::Seconds(10)) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(CountProcesses(mark), 0);
}

TEST_F(SandboxingTest, HoldsAProcessToItsCpuTime) {
  SandboxCommand command = {.options = {}, .kept_fds = {}, .argv = {"/bin/sh", "-c", "while :; do :; done"}};
  command.options.cpu_seconds = 1;
  std::vector<std::string> argv = SandboxArguments(command);
  argv.insert(argv.begin(), root_ / "bin/pawl-sandbox");
  const ProcessResult result = Run(argv, absl::Seconds(30));
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(result.signal == SIGXCPU || result.signal == SIGKILL) << EndText(result);
}

TEST_F(SandboxingTest, RunsABaselineWithItsPython) {
  ProcessOptions version;
  version.argv = {"python3", "--version"};
  if (!RunProcess(version).ok()) GTEST_SKIP() << "no python3 on this machine";
  std::ofstream(job() + "/baseline.py") << "import json, os, ctypes\n"
                                           "print(json.dumps([os.getcwd(), sorted(os.listdir('.'))]))\n";
  const ProcessResult result = Run(sandboxing_.Baseline({"python3", "baseline.py"}, job(), job()));
  EXPECT_EQ(result.out, absl::StrCat("[\"", job(), "\", [\"baseline.py\"]]\n")) << result.err;
  const ProcessResult missing = Run(sandboxing_.Baseline({"no-such-python", "baseline.py"}, job(), job()));
  EXPECT_EQ(missing.exit_code, kSandboxFailed);
  EXPECT_THAT(missing.err, HasSubstr("no-such-python can't be run in the sandbox: No such file"));
}

TEST_F(SandboxingTest, SaysWhatHolds) {
  EXPECT_THAT(sandboxing_.description(), AllOf(HasSubstr("sandboxed ("), HasSubstr("processes")));
  EXPECT_TRUE(sandboxing_.on());
}

TEST(NoSandbox, LeavesAProgramAsItIs) {
  const Sandboxing none;
  EXPECT_FALSE(none.on());
  EXPECT_THAT(none.Tool({"ncu", "--version"}, "/tmp"), ElementsAre("ncu", "--version"));
  EXPECT_THAT(none.Runner({"runner"}, 3), ElementsAre("runner"));
  EXPECT_THAT(none.Baseline({"python3", "baseline.py"}, "/tmp", "/tmp"), ElementsAre("python3", "baseline.py"));
}

TEST(SandboxCommandTest, ReadsWhatItWrites) {
  SandboxCommand command;
  command.options.visible = {"/a", "/b c"};
  command.options.writable = {"/d"};
  command.options.directory = "/d";
  command.options.gpu = command.options.loopback = command.options.executables = command.options.counters = true;
  command.options.temporary_bytes = uint64_t{5} << 40;
  command.options.file_bytes = 7;
  command.options.processes = 8;
  command.options.cpu_seconds = 9;
  command.kept_fds = {3, 5};
  command.argv = {"--gpu", "--", "x"};
  SandboxCommand read;
  ASSERT_EQ(ReadSandboxCommand(SandboxArguments(command), &read), "");
  EXPECT_EQ(SandboxArguments(read), SandboxArguments(command));
  EXPECT_EQ(read.argv, command.argv);
  EXPECT_EQ(read.options.temporary_bytes, command.options.temporary_bytes);
  EXPECT_TRUE(read.options.counters);
}

TEST(SandboxCommandTest, SaysWhatIsWrong) {
  SandboxCommand command;
  EXPECT_EQ(ReadSandboxCommand({"--gpu"}, &command), "expected -- and a program");
  EXPECT_EQ(ReadSandboxCommand({"--show"}, &command), "--show needs a value");
  EXPECT_EQ(ReadSandboxCommand({"--processes", "many", "--"}, &command), "--processes: \"many\" is none");
  EXPECT_EQ(ReadSandboxCommand({"--shw", "x", "--"}, &command), "unknown argument --shw");
  EXPECT_EQ(ReadSandboxCommand({"--keep-fd", "1", "--"}, &command), "--keep-fd: \"1\" is none");
}

}  // namespace
}  // namespace pawl
