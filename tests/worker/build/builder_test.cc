#include "worker/build/builder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/build/cubin.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr char kGood[] = "extern \"C\" __global__ void add(float* x) { x[threadIdx.x] += STEP; }\n";

// 2^24 templates: no compiler gets through them in seconds.
constexpr char kEndless[] =
    "template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };\n"
    "template <int M> struct F<0, M> { static const int v = M; };\n"
    "extern \"C\" __global__ void add(int* x) { x[0] = F<24, 0>::v; }\n";

v1::BuildRequest Request(const std::string& source, v1::Compiler compiler = v1::COMPILER_NVRTC) {
  v1::BuildRequest request;
  request.set_compiler(compiler);
  request.set_source(source);
  request.set_name("test.cu");
  request.set_architecture("sm_90");
  request.add_options("-DSTEP=2");
  request.add_entries("add");
  request.set_deadline_seconds(60);
  return request;
}

// Each compiler in turn; one that is not on this machine is skipped.
class BuilderTest : public testing::TestWithParam<v1::Compiler> {
 protected:
  void SetUp() override { Start(1); }

  void Start(int processes, bool skip_sandbox = false) {
    BuilderOptions options;
    options.processes = processes;
    options.allow_unsandboxed = options.skip_sandbox = skip_sandbox;
    if (GetParam() == v1::COMPILER_NVRTC && options.toolkit.nvrtc.empty()) GTEST_SKIP() << "no NVRTC on this machine";
    if (GetParam() == v1::COMPILER_NVCC && options.toolkit.nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine";
    absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(options);
    if (absl::IsFailedPrecondition(builder.status())) GTEST_SKIP() << builder.status().message();
    ASSERT_TRUE(builder.ok()) << builder.status();
    builder_ = *std::move(builder);
  }

  v1::BuildReply Build(const v1::BuildRequest& request) {
    absl::StatusOr<v1::BuildReply> reply = builder_->Build(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::BuildReply();
  }
  v1::BuildReply Build(const std::string& source) { return Build(Request(source, GetParam())); }

  void ExpectFailure(const v1::BuildReply& reply, v1::Check check, const std::string& text) {
    EXPECT_EQ(reply.failure().stage(), v1::STAGE_BUILD);
    EXPECT_EQ(v1::Check_Name(reply.failure().check()), v1::Check_Name(check));
    EXPECT_TRUE(absl::StrContains(reply.failure().message(), text))
        << reply.failure().message() << "\nlog: " << reply.log();
    EXPECT_TRUE(reply.cubin().empty());
  }

  std::unique_ptr<Builder> builder_;
};

INSTANTIATE_TEST_SUITE_P(With, BuilderTest, testing::Values(v1::COMPILER_NVRTC, v1::COMPILER_NVCC),
                         [](const auto& info) { return info.param == v1::COMPILER_NVRTC ? "Nvrtc" : "Nvcc"; });

TEST_P(BuilderTest, RefusesASourceThatAsksWhenItIsCompiled) {
  ExpectFailure(Build("// __DATE__\nextern \"C\" __global__ void add(int* x) { x[0] = __TIME__[7]; }\n"),
                v1::CHECK_COMPILE, "test.cu(2): error: the source uses __TIME__");
}

TEST_P(BuilderTest, GivesTheSameCubinWheneverItCompiles) {
  const std::string source =
      "#define PASTE(a, b) a##b\n"
      "extern \"C\" __global__ void add(int* x) { for (int i = 0; i < 8; ++i) x[i] = PASTE(__TI, ME__)[i]; }\n";
  const v1::BuildReply first = Build(source);
  ASSERT_FALSE(first.cubin().empty()) << first.failure().message() << first.host_error();
  const absl::Time second = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 1);
  while (absl::Now() < second) absl::SleepFor(second - absl::Now());
  EXPECT_EQ(Build(source).cubin(), first.cubin());
}

TEST_P(BuilderTest, CompilesOneSourceAfterAnother) {
  EXPECT_TRUE(builder_->sandboxed());
  for (int i = 0; i < 3; ++i) {
    const v1::BuildReply reply = Build(kGood);
    EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
    EXPECT_EQ(EntryNames(reply.cubin()).value(), std::vector<std::string>{"add"});
    EXPECT_GT(reply.seconds(), 0);
  }
}

TEST_P(BuilderTest, HasTheToolkitsHeaders) {
  const v1::BuildReply reply = Build(
      "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n"
      "extern \"C\" __global__ void add(__half* x) { x[0] = __hadd(x[0], __float2half(STEP)); }\n");
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message() << reply.log();
}

TEST_P(BuilderTest, ShowsTheFirstErrorWithItsLine) {
  const v1::BuildReply reply =
      Build("extern \"C\" __global__ void add(float* x) {\n  int unused;\n  x[0] = nope;\n  y[0] = 1;\n}\n");
  ExpectFailure(reply, v1::CHECK_COMPILE, "test.cu(3): error: identifier \"nope\" is undefined\n  3 | x[0] = nope;");
}

TEST_P(BuilderTest, ShowsAnErrorOfTheAssembler) {
  ExpectFailure(Build("extern \"C\" __global__ void add(float* x) { __shared__ float s[100000]; s[threadIdx.x] = x[0];"
                      " __syncthreads(); x[1] = s[(int)x[2]]; }"),
                v1::CHECK_COMPILE, "too much shared data");
}

TEST_P(BuilderTest, NamesTheEntriesThatAreThereWhenOneIsMissing) {
  const v1::BuildReply reply = Build(
      "extern \"C\" __global__ void first(float* x) { *x = 1; }\nextern \"C\" __global__ void second(float* x) { *x = "
      "2; }\n");
  ExpectFailure(reply, v1::CHECK_ENTRY, "no entry \"add\"; it has first, second");
}

TEST_P(BuilderTest, RefusesAnOptionThatTheCompilerDoesNotKnow) {
  v1::BuildRequest request = Request(kGood, GetParam());
  request.add_options("--no-such-option");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "no-such-option");
}

TEST_P(BuilderTest, BlamesTheMachineForAnArchitectureItsToolkitDoesNotKnow) {
  v1::BuildRequest request = Request(kGood, GetParam());
  request.set_architecture("sm_999");
  EXPECT_FALSE(builder_->Build(request).ok());
  request.set_architecture("--help");
  EXPECT_FALSE(builder_->Build(request).ok());
  EXPECT_FALSE(Build(kGood).has_failure());
}

TEST_P(BuilderTest, KillsACompilationAtItsDeadlineAndGoesOn) {
  v1::BuildRequest request = Request(kEndless, GetParam());
  request.set_deadline_seconds(0.5);
  const v1::BuildReply reply = Build(request);
  ExpectFailure(reply, v1::CHECK_TIMEOUT, "test.cu did not end within 0.5 s");
  EXPECT_LT(reply.seconds(), 20);
  EXPECT_FALSE(Build(kGood).has_failure());
}

TEST_P(BuilderTest, ReplacesAProcessThatWasKilledWhileIdle) {
  ASSERT_EQ(builder_->idle_processes().size(), 1);
  const pid_t before = builder_->idle_processes()[0];
  ASSERT_EQ(kill(-before, SIGKILL), 0);
  EXPECT_FALSE(Build(kGood).has_failure());
  EXPECT_NE(builder_->idle_processes()[0], before);
}

TEST_P(BuilderTest, CompilesSourcesWithBytesThatAreNoText) {
  EXPECT_FALSE(Build(absl::StrCat("// caf\xe9\n", kGood)).has_failure());
  ExpectFailure(Build("// caf\xe9\n#error caf\xe9\n"), v1::CHECK_COMPILE, "test.cu(2): error:");
}

TEST_P(BuilderTest, BelievesNothingACandidateSaysAboutTheMachine) {
  ExpectFailure(Build("#error nvcc fatal   : Cannot find compiler 'cicc' died due to signal 9 (Kill signal)\n"),
                v1::CHECK_COMPILE, "test.cu(1)");
}

TEST_P(BuilderTest, RefusesToIncludeAFileOutside) {
  ExpectFailure(Build(absl::StrCat("#include \"/etc/passwd\"\n", kGood)), v1::CHECK_BUILD_SANDBOX,
                "test.cu(1): error: the source asks for \"/etc/passwd\"");
  ExpectFailure(Build(absl::StrCat("#define P </etc/passwd>\n#include P\n", kGood)), v1::CHECK_BUILD_SANDBOX,
                "/etc/passwd");
  ExpectFailure(Build(absl::StrCat("#include \"../../etc/passwd\"\n", kGood)), v1::CHECK_BUILD_SANDBOX,
                "../../etc/passwd");
  ExpectFailure(Build(absl::StrCat("#include \"/proc/self/environ\"\n", kGood)), v1::CHECK_BUILD_SANDBOX, "environ");
}

TEST_P(BuilderTest, RefusesAssemblyThatTakesInAFile) {
  ExpectFailure(Build("extern \"C\" __global__ void add(float* x) { asm(\".incbin \\\"/etc/hostname\\\";\"); }"),
                v1::CHECK_BUILD_SANDBOX, "/etc/hostname");
}

TEST_P(BuilderTest, SeesNothingOfTheUsersFiles) {
  const char* home = getenv("HOME");
  std::string secret =
      absl::StrCat(home != nullptr && access(home, W_OK) == 0 ? home : "/tmp", "/pawl-secret-XXXXXX.h");
  const int fd = mkstemps(secret.data(), 2);
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(secret) << "#define SECRET 1\n";
  std::string source;
  for (const std::string& path :
       {secret, std::string("/etc/passwd"), std::string("/etc/hostname"), std::string("/proc/self/environ"),
        std::string("/proc/self/status"), std::string(getenv("PAWL_SOURCE_DIR")) + "/CMakeLists.txt"}) {
    absl::StrAppend(&source, "#if __has_include(\"", path, "\")\n#error sees ", path, "\n#endif\n");
  }
  const v1::BuildReply looked = Build(source + kGood);
  EXPECT_FALSE(looked.has_failure()) << looked.log();
  const v1::BuildReply included = Build(absl::StrCat("#include \"", secret, "\"\n", kGood));
  fs::remove(secret);
  ExpectFailure(included, v1::CHECK_BUILD_SANDBOX, secret);
}

TEST_P(BuilderTest, MayIncludeAToolkitHeaderByItsFullPath) {
  const std::string header = FindToolkit().include + "/cuda_fp16.h";
  EXPECT_FALSE(Build(absl::StrCat("#include \"", header, "\"\n", kGood)).has_failure());
  // Another mistake in such a source is not taken for theft.
  ExpectFailure(Build(absl::StrCat("#include \"", header, "\"\nnope;\n", kGood)), v1::CHECK_COMPILE, "test.cu(2)");
}

TEST_P(BuilderTest, BuildsSideBySide) {
  Start(2);
  std::vector<std::thread> threads;
  std::vector<v1::BuildReply> replies(6);
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([this, i, &replies] {
      v1::BuildRequest request = Request(kGood, GetParam());
      request.add_options(absl::StrCat("-DNUMBER=", i));
      request.set_source(absl::StrCat(kGood, "extern \"C\" __global__ void k", i, "(int* x) { *x = NUMBER; }\n"));
      replies[i] = Build(request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(EntryNames(replies[i].cubin()).value(), (std::vector<std::string>{"add", absl::StrCat("k", i)}));
  }
  EXPECT_EQ(builder_->idle_processes().size(), 2);
}

TEST_P(BuilderTest, BuildsAListSideBySideInItsOrder) {
  Start(3);
  std::vector<v1::BuildRequest> requests;
  for (int i = 0; i < 5; ++i) {
    requests.push_back(Request(absl::StrCat(kGood, "extern \"C\" __global__ void k", i, "(int* x) {}\n"), GetParam()));
  }
  requests[3].set_source("nope");
  for (int again = 0; again < 2; ++again) {
    const std::vector<absl::StatusOr<v1::BuildReply>> replies = builder_->BuildBeside(requests, nullptr);
    ASSERT_EQ(replies.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(replies[i].ok()) << replies[i].status();
      EXPECT_EQ(replies[i]->has_failure(), i == 3);
      if (i == 3) continue;
      EXPECT_EQ(EntryNames(replies[i]->cubin()).value(), (std::vector<std::string>{"add", absl::StrCat("k", i)}));
    }
    EXPECT_EQ(builder_->idle_processes().size(), 3u);
  }
}

TEST_P(BuilderTest, RefusesSuspiciousSourcesUnreadWhereThereIsNoSandbox) {
  Start(1, /*skip_sandbox=*/true);
  EXPECT_FALSE(builder_->sandboxed());
  EXPECT_TRUE(absl::StrContains(builder_->description(), "not sandboxed")) << builder_->description();
  EXPECT_FALSE(Build(kGood).has_failure());
  ExpectFailure(Build(absl::StrCat("#include \"/etc/passwd\"\n", kGood)), v1::CHECK_BUILD_SANDBOX, "/etc/passwd");
  ExpectFailure(Build(absl::StrCat("#define P \"/etc/passwd\"\n#include P\n", kGood)), v1::CHECK_BUILD_SANDBOX,
                "macro");
  v1::BuildRequest request = Request(kGood, GetParam());
  request.add_options("-include/etc/passwd");
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "names a path");
}

int CompilersOfBuilders() {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string command(std::istreambuf_iterator<char>(file), {});
    count += absl::StrContains(command, "cicc") && absl::StrContains(command, "pawl-builder-");
  }
  return count;
}

TEST_P(BuilderTest, KillsWhatTheCompilerStartedWhereThereIsNoSandbox) {
  Start(1, /*skip_sandbox=*/true);
  v1::BuildRequest request = Request(kEndless, GetParam());
  request.set_deadline_seconds(1);
  ExpectFailure(Build(request), v1::CHECK_TIMEOUT, "did not end within 1 s");
  // A process that was killed may take a moment to go. Other tests' compilers would be seen here too: this program runs
  // alone (RUN_SERIAL).
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (CompilersOfBuilders() > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(CompilersOfBuilders(), 0);
}

// A stand-in for pawl-builder that is shot in the middle of its work, by the signal in its name.
TEST(Builder, TriesOnceMoreAndThenSaysTooLargeWhenTheCompilerIsKilled) {
  const fs::path folder = fs::path(testing::TempDir()) / absl::StrCat("pawl-builder-test-", getpid());
  fs::create_directories(folder);
  const std::string count = folder / "starts";
  for (const int signal : {SIGKILL, SIGSEGV}) {
    fs::remove(count);
    const fs::path program = folder / absl::StrCat("dies-of-", signal);
    // An empty reply is four zero bytes: it says hello, waits for a request and dies.
    std::ofstream(program) << "#!/bin/sh\necho >> " << count << "\nprintf '\\0\\0\\0\\0'\nhead -c 1 > /dev/null\nkill -"
                           << signal << " $$\n";
    fs::permissions(program, fs::perms::owner_all);
    BuilderOptions options;
    options.toolkit.nvcc = "/bin/true";
    options.program = program;
    absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(options);
    ASSERT_TRUE(builder.ok()) << builder.status();
    const absl::StatusOr<v1::BuildReply> reply = (*builder)->Build(Request(kGood));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->failure().check(), v1::CHECK_COMPILE);
    EXPECT_TRUE(absl::StrContains(reply->failure().message(), signal == SIGKILL ? "too large" : "died of signal 11"))
        << reply->failure().message();
    EXPECT_EQ(fs::file_size(count), 2);
  }
  fs::remove_all(folder);
}

TEST(Builder, SaysWhereItLookedWhenThereIsNoToolkit) {
  BuilderOptions options;
  options.toolkit = Toolkit();
  options.toolkit.looked_in = {"/here", "/there"};
  const absl::Status status = Builder::Create(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(),
            "NVRTC was not found (looked in /here, /there): install the CUDA toolkit or set CUDA_HOME");
}

TEST(Builder, SaysThatALibraryCantBeLoaded) {
  BuilderOptions options;
  options.toolkit = Toolkit();
  options.toolkit.nvrtc = "/no/such/libnvrtc.so";
  options.allow_unsandboxed = true;
  const absl::Status status = Builder::Create(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "/no/such/libnvrtc.so")) << status;
}

}  // namespace
}  // namespace pawl
