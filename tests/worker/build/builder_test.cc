#include "worker/build/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/space.h"
#include "kernels/substitution.h"
#include "profiles/gpus.h"
#include "worker/build/built_variant.h"
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

  // Of so many processes that have compiled: what nvcc ran in is not used again.
  static size_t Kept(size_t processes) { return GetParam() == v1::COMPILER_NVCC ? 0 : processes; }

  std::unique_ptr<Builder> builder_;
};

INSTANTIATE_TEST_SUITE_P(With, BuilderTest, testing::Values(v1::COMPILER_NVRTC, v1::COMPILER_NVCC),
                         [](const auto& info) { return info.param == v1::COMPILER_NVRTC ? "Nvrtc" : "Nvcc"; });

TEST_P(BuilderTest, RefusesASourceThatAsksWhenItIsCompiled) {
  ExpectFailure(Build("// __DATE__\nextern \"C\" __global__ void add(int* x) { x[0] = __TIME__[7]; }\n"),
                v1::CHECK_COMPILE, "test.cu(2): error: the source uses __TIME__");
  v1::BuildRequest request = Request(
      "#if CHEAT\n__device__ char clock_ = __TIME__[7];\n#endif\nextern \"C\" __global__ void add(int* x) { x[0] = 1; "
      "}\n",
      GetParam());
  request.add_options("-DCHEAT=0");
  EXPECT_FALSE(Build(request).cubin().empty()) << "what is not compiled does no harm";
  request.set_options(request.options_size() - 1, "-DCHEAT=1");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "test.cu(2): error: the source uses __TIME__");
}

TEST_P(BuilderTest, TakesASourceThatIncludesTheDriversHeader) {
  const v1::BuildReply reply = Build(
      "#include <cuda.h>\nextern \"C\" __global__ void add(int* x, const __grid_constant__ CUtensorMap map) {\n"
      "  x[0] = sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64;\n}\n");
  EXPECT_FALSE(reply.cubin().empty()) << reply.failure().message();
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

TEST_P(BuilderTest, TellsAVariableThatTheSourceDeclaresForItself) {
  v1::Bundle bundle;
  bundle.set_compiler(GetParam());
  bundle.mutable_source()->set_path("test.cu");
  bundle.mutable_source()->set_text("template <int BLOCK>\n__global__ void add(float* x) { x[BLOCK] = 1; }\n");
  bundle.add_options("-DADD=1");
  v1::Variable& variable = *bundle.add_variables();
  variable.set_name("BLOCK");
  variable.add_values(128);
  variable.set_start(128);
  v1::Size& size = *bundle.add_sizes();
  size.set_name("main");
  (*size.mutable_values())["N"] = 128;
  v1::Tensor& tensor = *bundle.add_tensors();
  tensor.set_name("x");
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.set_role(v1::TENSOR_ROLE_OUTPUT);
  tensor.add_shape("N");
  v1::Launch& launch = *bundle.add_launches();
  launch.set_entry("add<128>");
  launch.add_grid("1");
  launch.add_block("BLOCK");
  launch.add_arguments("x");
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(*builder_, bundle, StartVariant(bundle), {size}, FindGpu("H200")->info);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(built->failure.has_value());
  EXPECT_EQ(built->failure->check(), v1::CHECK_COMPILE);
  EXPECT_THAT(built->failure->message(),
              ::testing::HasSubstr("BLOCK is a variable of kernel.toml, so the compiler reads 128 for it, and line 1 "
                                   "declares another BLOCK: give the variable a name of its own"));
}

TEST_P(BuilderTest, TellsTheNamespaceOfATemplate) {
  v1::BuildRequest request = Request(
      "namespace club::act {\nstruct Other {};\ntemplate <typename T> __global__ void norm(T* x) { x[0] = 1; }\n}\n",
      GetParam());
  request.clear_entries();
  request.add_entries("norm<float>");
  const v1::BuildReply reply = Build(request);
  EXPECT_EQ(reply.failure().check(), v1::CHECK_ENTRY);
  EXPECT_THAT(reply.failure().message(),
              ::testing::HasSubstr("test.cu has it in a namespace: entry = \"club::act::norm<float>\""));
}

TEST_P(BuilderTest, TellsHowToNameAKernelThatIsCalledLikeAFunctionOfCuda) {
  v1::BuildRequest request = Request("__global__ void norm(float* x) { x[0] = 1; }\n", GetParam());
  request.clear_entries();
  request.add_entries("::norm");
  const v1::BuildReply reply = Build(request);
  if (!reply.has_failure()) GTEST_SKIP() << "this compiler tells them apart";
  EXPECT_THAT(reply.failure().message(), ::testing::HasSubstr("entry = \"norm\" finds the kernel"));
  request.set_entries(0, "norm");
  EXPECT_FALSE(Build(request).has_failure());
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
  EXPECT_THAT(builder_->idle_processes(), testing::Not(testing::Contains(before)));
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
  EXPECT_EQ(builder_->idle_processes().size(), Kept(2));
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
    EXPECT_EQ(builder_->idle_processes().size(), Kept(3));
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
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "none of those that steer the device compiler");
  request.set_options(1, "-DHEADER=\"/etc/passwd\"");
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "names a path");
  for (const char* option : {"-Xcompiler=-wrapper,sh\\,x.sh",
                             "-forward-unknown-to-host-compiler",
                             "--forward-unknown-opts",
                             "-wrapper",
                             "-ccbin=x.sh",
                             "--run",
                             "-Xnvlink=-v",
                             "-Xfatbin=-v",
                             "-Xcudafe=--list",
                             "-optf=options.txt",
                             "-keep",
                             "--time=times.csv",
                             "-fdevice-time-trace=trace",
                             "--create-pch=names.pch",
                             "-o",
                             "other.cu",
                             "-Ofile",
                             "-",
                             "-DONE=$(sh x.sh)",
                             "-UONE`sh x.sh`",
                             "-Xptxas=-v;sh x.sh",
                             "--ptxas-options=-v>times.csv"}) {
    request.set_options(1, option);
    ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "which only a build sandbox allows");
  }
  for (const char* option : {"-UOTHER", "-Iinclude", "--std=c++17", "-maxrregcount=64", "--use_fast_math",
                             "-Xptxas=-dlcm=cg", "-DSHIFTED=(1<<3)", "-Wno-deprecated-gpu-targets"}) {
    request.set_options(1, option);
    const v1::BuildReply reply = Build(request);
    EXPECT_NE(reply.failure().check(), v1::CHECK_BUILD_SANDBOX) << reply.failure().message();
  }
}

// A variant whose options do not ask for a cubin makes no machine look broken, which would pause its campaign.
TEST_P(BuilderTest, BlamesTheVariantForOptionsThatMakeNoCubin) {
  const bool nvcc = GetParam() == v1::COMPILER_NVCC;
  std::vector<std::string> options = {"-dlto", "--optix-ir", "-arch=sm_999", "--time=/no/such/folder/times"};
  if (nvcc) options = {"-ptx", "--help", "-M", "-ccbin=nosuch", "-arch=sm_999"};
  for (const std::string& option : options) {
    v1::BuildRequest request = Request(kGood, GetParam());
    request.add_options(option);
    ExpectFailure(Build(request), v1::CHECK_COMPILE, "test.cu: ");
    EXPECT_FALSE(Build(kGood).cubin().empty()) << "after " << option;
  }
}

void AddFile(const std::string& path, const std::string& text, v1::BuildRequest* request) {
  v1::SourceFile& file = *request->add_files();
  file.set_path(path);
  file.set_text(text);
}

TEST_P(BuilderTest, FindsTheBundlesFilesFromTheTopAndFromWhereTheyStand) {
  v1::BuildRequest request = Request(
      "#include \"beside.cuh\"\n#include \"include/add.cuh\"\n#include <include/detail/step.cuh>\n"
      "extern \"C\" __global__ void add(float* x) { x[0] = Add(x[0]) + kBeside; }\n",
      GetParam());
  request.set_name("src/test.cu");
  AddFile("src/beside.cuh", "#pragma once\nconstexpr int kBeside = 1;\n", &request);
  AddFile("include/add.cuh",
          "#pragma once\n#include \"detail/step.cuh\"\n#include \"../src/beside.cuh\"\n"
          "__device__ inline float Add(float x) { return x + kStep; }\n",
          &request);
  AddFile("include/detail/step.cuh", "#pragma once\nconstexpr int kStep = STEP;\n", &request);
  for (const bool sandboxed : {true, false}) {
    if (!sandboxed) Start(1, /*skip_sandbox=*/true);
    const v1::BuildReply reply = Build(request);
    EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
    // What one build saw the next one does not.
    v1::BuildRequest without = request;
    without.clear_files();
    ExpectFailure(Build(without), v1::CHECK_COMPILE, "src/test.cu(1): error: ");
  }
}

TEST_P(BuilderTest, LooksForHeadersInTheBundlesOwnFolders) {
  v1::BuildRequest request = Request(
      "#include \"nn/add.cuh\"\nextern \"C\" __global__ void add(float* x) { x[0] = Add(x[0]); }\n", GetParam());
  request.set_name("src/test.cu");
  request.add_options("-Ilib/include");
  AddFile("lib/include/nn/add.cuh", "__device__ inline float Add(float x) { return x + STEP; }\n", &request);
  for (const bool sandboxed : {true, false}) {
    if (!sandboxed) Start(1, /*skip_sandbox=*/true);
    const v1::BuildReply reply = Build(request);
    EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  }
}

TEST_P(BuilderTest, HasTheStandardHeadersThatDeviceCodeIncludes) {
  std::string source;
  for (const char* header : {"algorithm", "array", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint",
                             "cstdio", "cstring", "limits", "stdint.h", "math.h", "tuple", "type_traits", "utility"}) {
    absl::StrAppend(&source, "#include <", header, ">\n");
  }
  absl::StrAppend(&source,
                  "template <typename T> __device__ T F(T x) {\n  static_assert(std::is_floating_point_v<T>);\n"
                  "  return std::max(std::sqrt(x), std::numeric_limits<T>::lowest()) + FLT_MAX + INT_MAX;\n}\n"
                  "extern \"C\" __global__ void add(float* x, int64_t n, std::uint8_t b, std::size_t s) {\n"
                  "  assert(n > 0);\n  x[0] = F(x[1]) + std::min(3, 4) + std::abs(x[2]) + fmaxf(x[3], INFINITY) + b;\n"
                  "  printf(\"%d\", static_cast<int>(s));\n  memset(x, 0, 4);\n}\n");
  v1::BuildRequest request = Request(source, GetParam());
  if (GetParam() ==
      v1::COMPILER_NVCC) {  // it takes the host compiler's headers, where std::swap is constexpr since C++20
    request.add_options("--expt-relaxed-constexpr");
    request.add_options("-std=c++20");
  }
  const v1::BuildReply reply = Build(request);
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  if (GetParam() == v1::COMPILER_NVCC) return;  // its own headers include <limits.h> before the source begins
  if (GetParam() == v1::COMPILER_NVCC) return;  // has the host's
  // A file of the bundle is not hidden by one of them.
  v1::BuildRequest own =
      Request("#include \"limits.h\"\nextern \"C\" __global__ void add(float* x) { *x = kOwn; }\n", GetParam());
  AddFile("limits.h", "constexpr int kOwn = 1;\n", &own);
  EXPECT_FALSE(Build(own).has_failure());
}

TEST_P(BuilderTest, KnowsNamesThatWithNvccComeByWayOfOtherHeaders) {
  if (GetParam() == v1::COMPILER_NVCC) GTEST_SKIP() << "it has the host's headers";
  const v1::BuildReply reply = Build(
      "#define REAL_MAX FLT_MAX\n"
      "template <typename T> __device__ std::enable_if_t<std::is_same_v<T, float>, T> F(T x) { return x; }\n"
      "extern \"C\" __global__ void add(float* x, uint a, ushort b, ulong c, int64_t d, uint32_t e, std::size_t f) {\n"
      "  std::pair<uint8_t, int> p(a, b);\n  std::conditional_t<sizeof(ulong) == 8, float, int> y = x[0];\n"
      "  x[0] = F(y) + p.first + c + d + e + f + std::pow(y, 2.f) + std::isnan(y) + (y < REAL_MAX ? INT_MAX : 1) +\n"
      "         std::numeric_limits<float>::max() + std::max(1, 2);\n}\n");
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
}

TEST_P(BuilderTest, HasEachStandardHeaderOnItsOwn) {
  for (const char* header : {"array", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstring",
                             "initializer_list", "limits", "stdbool.h", "type_traits"}) {
    const v1::BuildReply reply = Build(absl::StrCat("#include <", header, ">\n", kGood));
    EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  }
}

TEST_P(BuilderTest, LeavesSuchNamesToASourceThatDeclaresThem) {
  if (GetParam() == v1::COMPILER_NVCC) GTEST_SKIP() << "its headers declare them, whatever the source does";
  const v1::BuildReply reply = Build(
      "typedef unsigned long long ulong;\nusing int64_t = long;\n#define FLT_MAX 1.f\nusing namespace std;\n"
      "struct pair { uint64_t first; };\nstruct uint { int x; };\n"
      "extern \"C\" __global__ void add(ulong* x, int64_t n, uint u) { pair p = {n + u.x}; *x = p.first + FLT_MAX; "
      "}\n");
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
}

TEST_P(BuilderTest, HasNoSuchNamesWhereTheyClashWithTheSource) {
  const v1::BuildReply reply = Build(
      "using namespace std;\n"
      "template <typename T> __device__ T plus(T a, T b) { return a + b; }\n"
      "extern \"C\" __global__ void add(float* x, float y) { *x = plus(*x, y); }\n");
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
}

TEST_P(BuilderTest, HasTheStandardLibraryWhereHostCodeIsSkipped) {
  v1::Bundle bundle;
  bundle.set_skip_host_code(true);
  bundle.set_compiler(GetParam());
  bundle.mutable_source()->set_text(
      "#include <algorithm>\n#include <array>\n#include <cmath>\n#include <iostream>\n#include <limits>\n"
      "#include <type_traits>\n#include <utility>\n#include <vector>\n"
      "template <typename T> __device__ std::conditional_t<std::is_same_v<T, float>, float, double> F(T x) {\n"
      "  return std::isinf(x) || std::isnan(x) ? std::numeric_limits<T>::lowest() : std::max(x, std::min(x, "
      "T(3)));\n}\n"
      "void host() { std::cout << \"host\"; }\n"
      "extern \"C\" __global__ void add(float* x, std::size_t n) {\n  std::array<float, 2> a = {x[0], x[1]};\n"
      "  std::swap(a[0], a[1]);\n  std::pair<int, float> p(1, a[0]);\n  x[n] = F(p.second) + a[1];\n}\n");
  const absl::StatusOr<CompiledFiles> files = FilesToCompile(bundle, v1::Variant());
  ASSERT_TRUE(files.ok()) << files.status();
  v1::BuildRequest request = Request(files->source.text(), GetParam());
  for (const v1::SourceFile& file : files->files) *request.add_files() = file;
  for (const std::string& option : files->options) request.add_options(option);
  if (GetParam() == v1::COMPILER_NVCC) {
    request.add_options("--expt-relaxed-constexpr");
    request.add_options("-std=c++20");
  }
  const v1::BuildReply reply = Build(request);
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
}

TEST_P(BuilderTest, SaysThatNvccHasTheRestOfTheStandardLibrary) {
  if (GetParam() == v1::COMPILER_NVCC) GTEST_SKIP() << "it has all of it";
  ExpectFailure(Build("extern \"C\" __global__ void add(float* x) { std::valarray<float> y; }\n"), v1::CHECK_COMPILE,
                "`compiler = \"nvcc\"` in kernel.toml has all of it");
  ExpectFailure(Build(absl::StrCat("#include <execution>\n", kGood)), v1::CHECK_COMPILE,
                "`compiler = \"nvcc\"` in kernel.toml has them");
}

TEST_P(BuilderTest, GivesTheSameCodeWhateverTheFolderIsCalled) {
  v1::BuildRequest request = Request(
      "#include \"where.cuh\"\nextern \"C\" __global__ void add(const char** x) { *x = Where(); }\n", GetParam());
  AddFile("where.cuh", "__device__ inline const char* Where() { return __FILE__; }\n", &request);
  const v1::BuildReply first = Build(request);
  EXPECT_FALSE(first.has_failure()) << first.failure().message();
  EXPECT_EQ(Build(request).cubin(), first.cubin());
}

TEST_P(BuilderTest, NamesTheFileAndTheLineOfAnError) {
  v1::BuildRequest request = Request(absl::StrCat("#include \"include/add.cuh\"\n", kGood), GetParam());
  AddFile("include/add.cuh", "#include \"../other/bad.cuh\"\n", &request);
  AddFile("other/bad.cuh", "// first\n__device__ int f() { return nope; }\n", &request);
  ExpectFailure(Build(request), v1::CHECK_COMPILE,
                "other/bad.cuh(2): error: identifier \"nope\" is undefined\n  2 | __device__ int f() { return nope; }");
}

TEST_P(BuilderTest, SaysWhatToDoAboutAMissingHeader) {
  v1::BuildRequest request = Request(absl::StrCat("// first\n#include \"add.cuh\"\n", kGood), GetParam());
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "test.cu(2): error: ");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "; `files` in kernel.toml must name the files");
  AddFile("include/add.cuh", "// nothing\n", &request);
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "; the bundle has include/add.cuh");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "-Iinclude");
  request.set_source(absl::StrCat("#include \"cutlass/gemm.h\"\n", kGood));
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "`include = [\"cutlass\"]`");
  request.set_source(absl::StrCat("#include <torch/extension.h>\n", kGood));
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "`host_code = \"skip\"`");
  request.set_source(absl::StrCat("#include \"include/add.cuh\"\n", kGood));
  request.mutable_files(0)->set_text("#include \"deeper.cuh\"\n");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "include/add.cuh(1): error: ");
}

TEST_P(BuilderTest, SaysThatFilesIncludeEachOther) {
  v1::BuildRequest request = Request(absl::StrCat("#include \"a.cuh\"\n", kGood), GetParam());
  AddFile("a.cuh", "#include \"b.cuh\"\n", &request);
  AddFile("b.cuh", "// first\n#include \"a.cuh\"\n", &request);
  ExpectFailure(Build(request), v1::CHECK_COMPILE,
                "b.cuh(2): error: the files include each other without end: a.cuh -> b.cuh -> a.cuh");
  request.mutable_files(0)->set_text("#pragma once\n#include \"b.cuh\"\n");
  EXPECT_FALSE(Build(request).has_failure());
}

TEST_P(BuilderTest, FilesSeeNoMoreThanTheSource) {
  v1::BuildRequest request = Request(absl::StrCat("#include \"a.cuh\"\n", kGood), GetParam());
  AddFile("a.cuh", "// first\n#include \"/etc/passwd\"\n", &request);
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "a.cuh(2): error: the source asks for \"/etc/passwd\"");
  request.mutable_files(0)->set_text("#include \"../../etc/passwd\"\n");
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "../../etc/passwd");
  Start(1, /*skip_sandbox=*/true);
  ExpectFailure(Build(request), v1::CHECK_BUILD_SANDBOX, "a.cuh(1)");
  request.mutable_files(0)->set_path("../a.cuh");
  EXPECT_TRUE(Build(request).has_failure());
}

TEST_P(BuilderTest, HasTheHeaderLibrariesOfTheToolkit) {
  v1::BuildRequest request = Request(
      "#include <cub/block/block_reduce.cuh>\n#include <cooperative_groups.h>\n#include <cuda/std/array>\n"
      "extern \"C\" __global__ void add(float* x) {\n  using Reduce = cub::BlockReduce<float, 128>;\n"
      "  __shared__ typename Reduce::TempStorage storage;\n  cuda::std::array<float, 2> pair{x[threadIdx.x], 1};\n"
      "  const float sum = Reduce(storage).Sum(pair[0]);\n"
      "  if (cooperative_groups::this_thread_block().thread_rank() == 0) *x = sum;\n}\n",
      GetParam());
  for (const char* name : {"cub", "cooperative_groups", "libcudacxx"}) request.add_include(name);
  request.clear_options();  // CUB has a template parameter of the name STEP
  const v1::BuildReply reply = Build(request);
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  request.add_include("cutlass");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "this worker has no header library cutlass; it has cccl, ");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "pawl-worker --include cutlass=FOLDER");
}

TEST_P(BuilderTest, HasTheHeaderLibrariesThatAnAdministratorAllows) {
  const fs::path folder = fs::path(testing::TempDir()) / absl::StrCat("pawl-library-", getpid());
  fs::create_directories(folder / "mylib");
  std::ofstream(folder / "mylib/step.h") << "#pragma once\nconstexpr int kLibraryStep = 3;\n";
  fs::permissions(folder, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  BuilderOptions options;
  options.toolkit.libraries["mylib"] = fs::canonical(folder);
  absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(options);
  ASSERT_TRUE(builder.ok()) << builder.status();
  builder_ = *std::move(builder);
  v1::BuildRequest request = Request(
      "#include <mylib/step.h>\nextern \"C\" __global__ void add(float* x) { *x = kLibraryStep; }\n", GetParam());
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "`include = [\"mylib\"]`");
  request.add_include("mylib");
  const v1::BuildReply reply = Build(request);
  EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  fs::remove_all(folder);
}

TEST_P(BuilderTest, InstantiatesCppEntriesAndTellsTheirNames) {
  v1::BuildRequest request = Request(
      "namespace a {\nenum class Kind { kOne, kTwo };\n"
      "template <typename T, int N, bool kFast = false> __global__ void add(T* x, const T* y, const T* z) { x[0] = N + "
      "kFast; }\n"
      "template <Kind kKind> __global__ void pick(int* x) { *x = static_cast<int>(kKind); }\n"
      "__global__ void plain(const float* x, const float* y) {}\n}\n"
      "__global__ void outside(float* x) { *x = 1; }\nextern \"C\" __global__ void c(float* x) { *x = 1; }",
      GetParam());
  request.clear_entries();
  const std::map<std::string, std::string> expected = {{"a::add<float, 4>", "_ZN1a3addIfLi4ELb0EEEvPT_PKS1_S4_"},
                                                       {"a::add<float, 4, true>", "_ZN1a3addIfLi4ELb1EEEvPT_PKS1_S4_"},
                                                       {"a::add<double,(8>4)>", "_ZN1a3addIdLi1ELb0EEEvPT_PKS1_S4_"},
                                                       {"::a::plain", "_ZN1a5plainEPKfS1_"},
                                                       {"a::pick<a::Kind::kTwo>", "_ZN1a4pickILNS_4KindE1EEEvPi"},
                                                       {"outside", "_Z7outsidePf"}};
  for (const auto& [entry, symbol] : expected) request.add_entries(entry);
  request.add_entries("c");
  const v1::BuildReply reply = Build(request);
  ASSERT_FALSE(reply.has_failure()) << reply.failure().message();
  const std::map<std::string, std::string> lowered(reply.lowered().begin(), reply.lowered().end());
  EXPECT_EQ(lowered, expected) << "c is itself";
  EXPECT_EQ(EntryNames(reply.cubin())->size(), 7u) << "nothing of ours is among them";
}

TEST_P(BuilderTest, SaysWhatIsWrongWithACppEntry) {
  const char* source =
      "namespace a {\ntemplate <int N> __global__ void add(float* x) {\n  static_assert(N < 4, \"too many\");\n"
      "  x[0] += N;\n}\n__global__ void one(float* x) {}\n__global__ void one(int* x) {}\n}\n"
      "__global__ void two(float* x) {}\n__global__ void two(int* x) {}\n";
  v1::BuildRequest request = Request(source, GetParam());
  request.set_entries(0, "a::add<8>");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "test.cu(3): error: static assertion failed");
  request.set_entries(0, "a::ad<2>");
  ExpectFailure(Build(request), v1::CHECK_ENTRY,
                "the entry a::ad<2> can't be instantiated: namespace \"a\" has no member \"ad\"");
  request.set_entries(0, "a::add<float>");
  ExpectFailure(Build(request), v1::CHECK_ENTRY, "the entry a::add<float> can't be instantiated: ");
  request.set_entries(0, "two");
  ExpectFailure(Build(request), v1::CHECK_ENTRY, "is one of several: two(float*), two(int*)");
}

constexpr char kPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry add(.param .u64 p)\n{\n  .reg .b64 %a<3>;\n"
    "  .reg .f32 %f<2>;\n  ld.param.u64 %a1, [p];\n  cvta.to.global.u64 %a2, %a1;\n  mov.f32 %f1, 0f3F800000;\n"
    "  st.global.f32 [%a2], %f1;\n  ret;\n}\n";

TEST_P(BuilderTest, AssemblesPtx) {
  if (FindToolkit().nvcc.empty()) GTEST_SKIP() << "no ptxas on this machine";
  v1::BuildRequest request = Request(kPtx, GetParam());
  request.set_name("kernels/add.ptx");
  request.clear_options();
  request.add_options("-maxrregcount=64");
  request.set_architecture("sm_90a");
  const v1::BuildReply reply = Build(request);
  ASSERT_FALSE(reply.has_failure()) << reply.failure().message();
  EXPECT_EQ(EntryNames(reply.cubin()).value(), std::vector<std::string>{"add"});
  EXPECT_EQ(CubinArchitecture(reply.cubin()).value(), 90);
  request.set_entries(0, "sub");
  ExpectFailure(Build(request), v1::CHECK_ENTRY, "no entry \"sub\"; it has add");
  request.set_source(absl::StrCat(kPtx, "nonsense\n"));
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "kernels/add.ptx(14): error: ptxas: ");
  request.set_source(kPtx);
  request.add_options("--use_fast_math");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "use_fast_math");
}

TEST_P(BuilderTest, TakesACubinAsItIs) {
  const v1::BuildReply built = Build(kGood);
  ASSERT_FALSE(built.has_failure());
  v1::BuildRequest request = Request("", GetParam());
  request.set_name("add.cubin");
  request.set_binary(built.cubin());
  request.set_architecture("sm_90a");
  const v1::BuildReply reply = Build(request);
  ASSERT_FALSE(reply.has_failure()) << reply.failure().message();
  EXPECT_EQ(reply.cubin(), built.cubin());
  request.set_entries(0, "sub");
  ExpectFailure(Build(request), v1::CHECK_ENTRY, "no entry \"sub\"; it has add");
  for (const char* other : {"sm_80", "sm_89", "sm_100a", "sm_120"}) {
    request.set_architecture(other);
    ExpectFailure(Build(request), v1::CHECK_COMPILE, absl::StrCat("the cubin is for sm_90, and this GPU is ", other));
  }
  request.set_binary(
      "\x7f"
      "ELF and nothing else");
  ExpectFailure(Build(request), v1::CHECK_COMPILE, "not a cubin");
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

// nvcc's options can name programs for it to run. What these leave behind must not meddle with builds that follow: the
// reference's may be among them.
TEST_P(BuilderTest, LeavesNoProcessOfABuildBesideTheNext) {
  if (GetParam() == v1::COMPILER_NVRTC) GTEST_SKIP() << "it runs no programs";
  v1::BuildRequest meddler = Request(kGood, GetParam());
  meddler.add_options("-Xcompiler=-wrapper,sh\\,wrapper.sh");
  const auto add = [&](const char* path, const char* text) {
    v1::SourceFile& file = *meddler.add_files();
    file.set_path(path);
    file.set_text(text);
  };
  add("wrapper.sh",
      "cp meddle.sh /tmp/meddle.sh\nsetsid sh /tmp/meddle.sh < /dev/null > /dev/null 2>&1 &\nexec \"$@\"\n");
  add("meddle.sh",
      "end=$(($(date +%s) + 20))\nwhile [ $(date +%s) -lt $end ]; do\n"
      "  if grep -sq next /tmp/bundle/test.cu; then echo '#error meddled with' > /tmp/bundle/test.cu; fi\ndone\n");
  const v1::BuildReply first = Build(meddler);
  ASSERT_FALSE(first.has_failure()) << first.failure().message();
  const v1::BuildReply next = Build(absl::StrCat("// next\n", kGood));
  EXPECT_FALSE(next.has_failure()) << next.failure().message();
}

// Nor do its files tell a source how often it was compiled.
TEST_P(BuilderTest, LeavesNoFileOfABuildToTheNext) {
  const std::string source = absl::StrCat("#if __has_include(\"/tmp/left\")\n#error compiled before\n#endif\n", kGood);
  v1::BuildRequest writes = Request(source, GetParam());
  writes.add_options("-fdevice-time-trace=/tmp/left");
  for (int build = 0; build < 2; ++build) {
    const v1::BuildReply reply = Build(writes);
    if (absl::StrContains(reply.failure().message(), "time-trace")) GTEST_SKIP() << reply.failure().message();
    EXPECT_FALSE(reply.has_failure()) << reply.failure().message();
  }
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
