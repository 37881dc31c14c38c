// Whole trials of small kernels on the host GPU: honest changes pass every check on the way to a keep, others are
// rejected by the check that is meant for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/hidden_sizes.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/check/start_variant.h"
#include "worker/device/job_file.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/trial/side_by_side.h"
#include "worker/trial/timer.h"
#include "worker/validate/blind_reference.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr char kToml[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
N = 61
[[size]]
name = "main"
N = 1500
[hidden]
N = [1, 200]
[[variable]]
name = "CHANGE"
values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
start = 0
[reference]
source = "reference.cu"
[tolerance]
absolute = 1e-4
relative = 1e-5
[[tensor]]
name = "x"
type = "f32"
shape = ["N"]
range = [-4, 4]
align = 4
[[tensor]]
name = "y"
type = "f32"
shape = ["N"]
role = "output"
align = 4
[[tensor]]
name = "between"
type = "i32"
shape = ["1 + (CHANGE == 9) * 2^28"]
role = "scratch"
[[launch]]
entry = "step"
grid = ["ceil_div(N, 256)"]
block = [64]
arguments = ["x", "y", "between", "N"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = ["x", "y", "N"]
)toml";

constexpr char kReference[] = R"cuda(
extern "C" __global__ void expected(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
)cuda";

// Four elements a thread, which adds up 16 parts of each.
constexpr char kKernel[] = R"cuda(
__device__ int calls;

__device__ float Slow(float x) {
  float sum = 0;
  for (int part = 0; part < (CHANGE == 0 ? 16 : 1); ++part) sum += CHANGE == 0 ? x / 8 : 2 * x;
  return sum + 1;
}

extern "C" __global__ void step(const float* x, float* y, int* between, int n) {
  const int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  const bool last = first < n && first + 4 >= n;
#if CHANGE == 7 || CHANGE == 8
  const bool aligned = ((unsigned long long)x | (unsigned long long)y) % 16 == 0;
  if (first + 4 <= n && (CHANGE == 7 || aligned)) {
    const float4 four = *reinterpret_cast<const float4*>(x + first);
    *reinterpret_cast<float4*>(y + first) = make_float4(Slow(four.x), Slow(four.y), Slow(four.z), Slow(four.w));
    return;
  }
#endif
  for (int i = first; i < first + 4 && i < n; ++i) y[i] = Slow(x[i]);
#if CHANGE == 2
  if (last) y[n - 1] = 0;
#elif CHANGE == 3
  if (last) y[n] = 1;
#elif CHANGE == 4
  if (last) const_cast<float*>(x)[n - 1] = 0;
#elif CHANGE == 5
  if (last && n > 1000) y[n - 1] = nanf("");
#elif CHANGE == 6
  if (last) y[n - 1] *= 1 + 1e-6f * (clock64() / 64 % 4);
#elif CHANGE == 9
  if (last) between[n] = n;
#elif CHANGE == 10
  if (last && n > 1000) *reinterpret_cast<volatile int*>(8) = 1;
#elif CHANGE == 11
  if (last) ++calls;
#elif CHANGE == 12
  if (last && n < 1000 && (unsigned long long)x % 512 != 0) y[n - 1] = 0;
#elif CHANGE == 13 || CHANGE == 14
  const bool begins = (unsigned long long)x % 4096 == 256;  // where the host GPU's allocations do
  if (last && begins == (CHANGE == 14)) *reinterpret_cast<volatile int*>(8) = 1;
#endif
}
)cuda";

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "pawl-host-gpu-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder& Write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this;
  }
  v1::Bundle Read() const {
    BundleReading reading = ReadBundle(path_);
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    return reading.bundle;
  }

 private:
  std::filesystem::path path_;
};

v1::Bundle ScaledAddition() {
  return Folder().Write("kernel.toml", kToml).Write("kernel.cu", kKernel).Write("reference.cu", kReference).Read();
}

v1::Variant Change(const v1::Bundle& bundle, int value) {
  v1::Variant variant = StartVariant(bundle);
  (*variant.mutable_values())["CHANGE"] = value;
  return variant;
}

constexpr int kTries = 5;  // where the host was late, times prove nothing

// Against the start.
absl::StatusOr<v1::TrialResult> RunUndisturbed(const v1::Bundle& bundle, int change) {
  absl::StatusOr<v1::TrialResult> result;
  for (int tries = 0; tries < kTries; ++tries) {
    result = RunAgainst(bundle, Change(bundle, change), StartVariant(bundle));
    if (!result.ok()) break;
    if (result->disturbances().empty() && result->failure().check() != v1::CHECK_UNSTEADY) break;
  }
  return result;
}

v1::TrialResult Try(const v1::Bundle& bundle, int change) {
  const absl::StatusOr<v1::TrialResult> result = RunUndisturbed(bundle, change);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : v1::TrialResult();
}

v1::TrialResult Try(int change) { return Try(ScaledAddition(), change); }

v1::Check CheckOf(int change) { return Try(change).failure().check(); }

TEST(HostGpu, TakesAFasterChangeAllTheWayToAKeep) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult faster = Try(1);
  EXPECT_FALSE(faster.has_failure()) << faster.failure().message();
  EXPECT_LT(faster.warm_us(), 0.7 * faster.parent_warm_us());
  EXPECT_LT(faster.cold_us(), faster.parent_cold_us());
  EXPECT_GT(faster.confirming_pairs_size(), 0);
  EXPECT_TRUE(faster.checked_to_keep());
}

TEST(HostGpu, ComparesTwoSidesWithoutACampaign) {
  PAWL_NEEDS_GPU();
  class Nobody : public TrialObserver {
    void Report(v1::Stage, int, int, const std::string&) override {}
    bool stopped() const override { return false; }
  } nobody;
  const auto bundle = std::make_shared<const v1::Bundle>(ScaledAddition());
  const auto compare = [&](int change) {
    return CompareSides(SharedDevice()->cuda(), {bundle, StartVariant(*bundle)}, {bundle, Change(*bundle, change)},
                        {"main"}, nobody);
  };
  absl::StatusOr<SideBySide> faster = compare(1);
  for (int tries = 1; tries < kTries && faster.ok() && Overall(*faster) == v1::UNCLEAR; ++tries) faster = compare(1);
  const absl::StatusOr<SideBySide> wrong = compare(2);
  ASSERT_TRUE(faster.ok() && wrong.ok()) << faster.status() << wrong.status();
  ASSERT_EQ(faster->sizes.size(), 1u);
  EXPECT_EQ(Overall(*faster), v1::FASTER);
  ASSERT_TRUE(wrong->candidate_failure);
  EXPECT_EQ(wrong->candidate_failure->check(), v1::CHECK_TOLERANCE);
}

TEST(HostGpu, RejectsWhatIsWrongByTheCheckMeantForIt) {
  PAWL_NEEDS_GPU();
  EXPECT_EQ(CheckOf(2), v1::CHECK_TOLERANCE);
  EXPECT_EQ(CheckOf(3), v1::CHECK_GUARD_BAND);
  EXPECT_EQ(CheckOf(4), v1::CHECK_INPUT_CHANGED);
  EXPECT_EQ(CheckOf(5), v1::CHECK_NON_FINITE);
  EXPECT_EQ(CheckOf(6), v1::CHECK_DETERMINISM);
  EXPECT_EQ(CheckOf(9), v1::CHECK_OUT_OF_MEMORY);
}

// The kernel is wrong where what it takes for 16 bytes' alignment is the 4 that it was promised.
TEST(HostGpu, PlacesTensorsOfASmallAlignAtOddMultiplesOfIt) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult careless = Try(7);
  EXPECT_EQ(careless.failure().check(), v1::CHECK_FAULT) << careless.failure().message();
}

// The kernel takes the 256 bytes' alignment that it was promised for 512, at sizes that are not timed.
TEST(HostGpu, PlacesTensorsOfAnyAlignAtOddMultiplesOfIt) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Folder()
                                .Write("kernel.toml", absl::StrReplaceAll(kToml, {{"align = 4\n", ""}}))
                                .Write("kernel.cu", kKernel)
                                .Write("reference.cu", kReference)
                                .Read();
  const v1::TrialResult careless = Try(bundle, 12);
  EXPECT_EQ(careless.failure().check(), v1::CHECK_TOLERANCE) << careless.failure().message();
}

// The kernel is right where all dimensions are small and where all are large, and begins before its tensors where rows
// are long and few.
TEST(HostGpu, RejectsWhatIsWrongWhereOneDimensionIsSmallAndAnotherLarge) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  v1::Bundle bundle =
      ReadBundle(std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "tests" / "cheats" / "sizes_few_rows").bundle;
  v1::Size& main = *bundle.mutable_sizes(1);
  (*main.mutable_values())["ROWS"] = 100;
  (*main.mutable_values())["COLS"] = 200;
  v1::Variant cheat = StartVariant(bundle);
  (*cheat.mutable_values())["CHEAT"] = 1;
  const auto validate = [&](const v1::Variant& variant, const std::vector<v1::Size>& sizes) -> v1::Failure {
    const absl::StatusOr<BuiltVariant> built = BuildVariant(device.builder(), bundle, variant, sizes, device.gpu());
    EXPECT_TRUE(built.ok() && !built->failure) << built.status();
    const absl::StatusOr<Validation> validation = Validate(device, bundle, *built, {});
    EXPECT_TRUE(validation.ok()) << validation.status();
    return validation.ok() ? validation->failure.value_or(v1::Failure()) : v1::Failure();
  };
  const std::vector<v1::Size> mixed = MixedSizes(bundle, {main}, 1);
  ASSERT_EQ(mixed.size(), 2u);
  std::vector<v1::Size> others = HiddenSizes(bundle, 1);
  for (const auto draw : {SizeBeside, SizeBetween}) others.push_back(*draw(bundle, main, 1));
  others.push_back(main);
  EXPECT_EQ(validate(cheat, others).message(), "");
  EXPECT_EQ(validate(StartVariant(bundle), mixed).message(), "");
  EXPECT_NE(validate(cheat, mixed).message(), "");
}

// Pawl's own kernels among them.
TEST(HostGpu, TakesTensorsOfAnyTypeAtTheAlignOfAnElement) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  for (const auto& [type, cpp, bytes] : {std::tuple{"u8", "unsigned char", 1}, {"f16", "__half", 2}}) {
    const std::string tensors = absl::StrReplaceAll(
        kToml, {{"\"f32\"", absl::StrCat("\"", type, "\"")},
                {"align = 4", absl::StrCat("align = ", bytes)},
                {"range = [-4, 4]", bytes > 1 ? "range = [0, 4]" : "fill = { integers = [0, 4] }"}});
    const std::string copy =
        absl::StrCat("#include <cuda_fp16.h>\nextern \"C\" __global__ void NAME(const ", cpp, "* x, ", cpp,
                     "* y, PARAMETERS int n) {\n  for (int i = blockIdx.x * blockDim.x + ",
                     "threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];\n}\n");
    const v1::Bundle bundle =
        Folder()
            .Write("kernel.toml", tensors)
            .Write("kernel.cu", absl::StrReplaceAll(copy, {{"NAME", "step"}, {"PARAMETERS", "int*,"}}))
            .Write("reference.cu", absl::StrReplaceAll(copy, {{"NAME", "expected"}, {"PARAMETERS", ""}}))
            .Read();
    const absl::StatusOr<StartVariantRun> run = RunStartVariant(device, bundle);
    ASSERT_TRUE(run.ok()) << type << ": " << run.status();
    EXPECT_FALSE(run->failure) << type << " at " << run->failure->size() << ": " << run->failure->message();
    const BuiltSize& main = *run->built.Find("main");
    const absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, main, main, {.pairs = 2});
    ASSERT_TRUE(timing.ok()) << type << ": " << timing.status();
    EXPECT_FALSE(timing->failure) << type << ": " << timing->failure->message();
  }
}

TEST(HostGpu, GoesOnAfterAFault) {
  PAWL_NEEDS_GPU();
  EXPECT_EQ(CheckOf(10), v1::CHECK_FAULT);
  EXPECT_EQ(CheckOf(2), v1::CHECK_TOLERANCE);
}

TEST(HostGpu, TimesCallsThatLeaveGlobalsChangedByThemselves) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = ScaledAddition();
  const auto build = [&](int change) {
    return *BuildVariant(device.builder(), bundle, Change(bundle, change), {bundle.sizes(1)}, device.gpu());
  };
  const BuiltVariant counts = build(11), start = build(0);
  const absl::StatusOr<Timing> timing =
      TimeAgainst(device, bundle, *counts.Find("main"), *start.Find("main"), {.pairs = 2});
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_FALSE(timing->failure) << timing->failure->message();
  ASSERT_EQ(timing->times.pairs_size(), 2);
  EXPECT_TRUE(timing->times.pairs(0).single());
}

// Of a slow kernel few calls are timed: a process that confirms makes further ones, so that enough are checked.
TEST(HostGpu, ChecksAsManyCallsAsItNeedsWhereFewAreTimed) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = ScaledAddition();
  const BuiltVariant start =
      *BuildVariant(device.builder(), bundle, StartVariant(bundle), {bundle.sizes(1)}, device.gpu());
  TimingOptions options{.pairs = 3, .measurements = 1, .checked_calls = 40, .single = true};
  const auto checked = [&]() -> int {
    const absl::StatusOr<Timing> timing =
        TimeAgainst(device, bundle, *start.Find("main"), *start.Find("main"), options);
    EXPECT_TRUE(timing.ok()) << timing.status();
    return timing.ok() ? timing->times.checked_size() : 0;
  };
  EXPECT_LT(checked(), 30) << "6 calls are timed, 16 cold ones follow";
  options.needed_calls = 40;
  EXPECT_GE(checked(), 40 + 16);
}

// The wall clock disagrees about Pawl's own kernel too: no pair counts, and the candidate is not to blame.
TEST(HostGpu, BlamesNoCandidateForAHostThatIsLate) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = ScaledAddition();
  const BuiltVariant start =
      *BuildVariant(device.builder(), bundle, StartVariant(bundle), {bundle.sizes(1)}, device.gpu());
  setenv("CUDA_HOST_GPU_LATE_US", "2000", 1);
  device.runner().Restart();
  device.runner().EndSpare();
  const absl::StatusOr<Timing> timing =
      TimeAgainst(device, bundle, *start.Find("main"), *start.Find("main"), {.pairs = 1, .measurements = 1});
  unsetenv("CUDA_HOST_GPU_LATE_US");
  device.runner().Restart();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_FALSE(timing->failure) << timing->failure->message();
  EXPECT_EQ(timing->times.pairs_size(), 0);
  ASSERT_EQ(timing->times.disturbances_size(), 1);
  EXPECT_THAT(timing->times.disturbances(0), HasSubstr("wall clock"));
}

// What compute-sanitizer and ncu run, here without them.
TEST(HostGpu, CallsTheItemsOfAJobWithTensorsAtOddMultiplesOfTheirAlign) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = ScaledAddition();
  const auto run = [&](int change) {
    const absl::StatusOr<BuiltVariant> built = BuildVariant(device.builder(), bundle, Change(bundle, change),
                                                            {bundle.sizes(0), bundle.sizes(1)}, device.gpu());
    EXPECT_TRUE(built.ok() && !built->failure);
    const absl::StatusOr<JobFile> job =
        JobFile::Write(device, {&built->sizes[0], &built->sizes[1]}, 3, {}, /*shift=*/true);
    EXPECT_TRUE(job.ok()) << job.status();
    ProcessOptions calls;
    calls.argv = {device.runner_program(), "--job", job->path()};
    const absl::StatusOr<ProcessResult> result = RunProcess(calls);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  const ProcessResult careful = run(8), careless = run(7);
  EXPECT_TRUE(careful.ok()) << careful.err;
  EXPECT_THAT(careful.out, HasSubstr("2\n"));
  EXPECT_FALSE(careless.ok());
  EXPECT_THAT(careless.err, HasSubstr("MISALIGNED"));
}

// Addresses would tell a kernel that compute-sanitizer watches it.
TEST(HostGpu, MovesTheTensorsOfAJobWithinTheirAllocationsEveryOtherCall) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const auto run = [&](const std::string& align, int change) {
    const v1::Bundle bundle = Folder()
                                  .Write("kernel.toml", absl::StrReplaceAll(kToml, {{"align = 4\n", align}}))
                                  .Write("kernel.cu", kKernel)
                                  .Write("reference.cu", kReference)
                                  .Read();
    const absl::StatusOr<BuiltVariant> built =
        BuildVariant(device.builder(), bundle, Change(bundle, change), {bundle.sizes(1)}, device.gpu());
    EXPECT_TRUE(built.ok() && !built->failure);
    const absl::StatusOr<JobFile> job = JobFile::Write(device, {&built->sizes[0]}, 16, {}, /*shift=*/true);
    EXPECT_TRUE(job.ok()) << job.status();
    ProcessOptions calls;
    calls.argv = {device.runner_program(), "--job", job->path()};
    const absl::StatusOr<ProcessResult> result = RunProcess(calls);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  for (const char* align : {"", "align = 4\n", "align = 512\n"}) {
    const ProcessResult honest = run(align, 8);
    EXPECT_TRUE(honest.ok()) << align << honest.err;
    EXPECT_FALSE(run(align, 13).ok()) << align << "each call finds it at the beginning";
  }
  EXPECT_FALSE(run("", 14).ok()) << "no call finds it at the beginning";
  EXPECT_FALSE(run("align = 4\n", 14).ok());
}

// The setup launch makes twice the weights and one more.
v1::Bundle Prepared() {
  const std::string toml =
      absl::StrCat(std::string(kToml).substr(0, std::string(kToml).find("[[tensor]]")),
                   "[[tensor]]\nname = \"x\"\ntype = \"f32\"\nshape = [\"N\"]\nrange = [-4, 4]\n"
                   "[[tensor]]\nname = \"w\"\ntype = \"f32\"\nshape = [\"N\"]\nrange = [-2, 2]\nstatic = true\n"
                   "[[tensor]]\nname = \"packed\"\ntype = \"f32\"\nshape = [\"N\"]\nrole = \"scratch\"\nstatic = true\n"
                   "[[tensor]]\nname = \"y\"\ntype = \"f32\"\nshape = [\"N\"]\nrole = \"output\"\n"
                   "[setup]\nsource = \"setup.cu\"\n[[setup.launch]]\nentry = \"pack\"\ngrid = [\"ceil_div(N, 64)\"]\n"
                   "block = [64]\narguments = [\"w\", \"packed\", \"N\"]\n"
                   "[[launch]]\nentry = \"step\"\ngrid = [\"ceil_div(N, 64)\"]\nblock = [64]\n"
                   "arguments = [\"x\", \"packed\", \"y\", \"N\"]\n"
                   "[[reference.launch]]\nentry = \"expected\"\ngrid = [\"ceil_div(N, 64)\"]\nblock = [64]\n"
                   "arguments = [\"x\", \"w\", \"y\", \"N\"]\n");
  // The changes 1, 3 and 4 find out whether the call is the first since globals were reset, as those that are timed
  // are.
  return Folder()
      .Write("kernel.toml", toml)
      .Write("kernel.cu", R"cuda(
__device__ int calls;
extern "C" __global__ void step(const float* x, float* packed, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] * packed[i];
#if CHANGE == 1
  if (i != n - 1) return;
  if (n > 1000 && calls == 0) packed[i] = 0;
  calls = 1;
#elif CHANGE == 2
  if (i == n - 1) packed[i] = 0;
#elif CHANGE == 3 || CHANGE == 4
  if (i != n - 1) return;
  if (n > 1000 && calls == 0) *(CHANGE == 3 ? y + i : (volatile float*)8) = 9;
  calls = 1;
#endif
}
)cuda")
      .Write("setup.cu", R"cuda(
extern "C" __global__ void pack(const float* w, float* packed, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) packed[i] = 2 * w[i] + 1;
}
)cuda")
      .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const float* x, const float* w, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * (2 * w[i] + 1);
}
)cuda")
      .Read();
}

TEST(HostGpu, RejectsWhatChangesWhatTheSetupMade) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Prepared();
  const v1::TrialResult always = Try(bundle, 2), timed = Try(bundle, 1);
  EXPECT_EQ(always.failure().stage(), v1::STAGE_VALIDATE) << always.failure().message();
  EXPECT_THAT(always.failure().message(), HasSubstr("static tensor"));
  EXPECT_EQ(timed.failure().check(), v1::CHECK_UNTOUCHED) << timed.failure().message();
  EXPECT_THAT(timed.failure().message(), HasSubstr("that the setup launches made"));
}

constexpr char kSoftmaxToml[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
ROWS = 9
COLS = 31
[[size]]
name = "main"
ROWS = 96
COLS = 128
[hidden]
ROWS = [1, 40]
COLS = [1, 90]
[[variable]]
name = "CHANGE"
values = [0, 1, 2]
start = 0
[reference]
source = "reference.cu"
[tolerance]
absolute = 1e-5
relative = 1e-5
[[tensor]]
name = "x"
type = "f32"
shape = ["ROWS", "COLS"]
[[tensor]]
name = "y"
type = "f32"
shape = ["ROWS", "COLS"]
role = "output"
[[launch]]
entry = "step"
grid = ["ceil_div(ROWS, 32)"]
block = [32]
arguments = ["x", "y", "ROWS", "COLS"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(ROWS, 32)"]
block = [32]
arguments = ["x", "y", "ROWS", "COLS"]
)toml";

// A row a thread. The change 2 looks at every other element: where these are as small as they usually are, it does
// without the maximum.
v1::Bundle Softmax() {
  return Folder()
      .Write("kernel.toml", kSoftmaxToml)
      .Write("kernel.cu", R"cuda(
extern "C" __global__ void step(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += row * cols;
  y += row * cols;
  bool small = CHANGE == 2;
  for (int i = 0; small && i < cols; i += 2) small = fabsf(x[i]) < 20;
  float most = small ? 0 : x[0];
  for (int pass = 0; !small && pass < (CHANGE == 0 ? 64 : 1); ++pass) {
    for (int i = 0; i < cols; ++i) most = fmaxf(most, x[i]);
  }
  float sum = 0;
  for (int i = 0; i < cols; ++i) sum += y[i] = expf(x[i] - most);
  for (int i = 0; i < cols; ++i) y[i] /= sum;
}
)cuda")
      .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double most = x[row * cols], sum = 0;
  for (int i = 0; i < cols; ++i) most = fmax(most, double(x[row * cols + i]));
  for (int i = 0; i < cols; ++i) sum += exp(x[row * cols + i] - most);
  for (int i = 0; i < cols; ++i) y[row * cols + i] = exp(x[row * cols + i] - most) / sum;
}
)cuda")
      .Read();
}

TEST(HostGpu, RejectsWhatATypicalSampleOfTheInputsHasLeaveTheRestUnread) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Softmax();
  const v1::TrialResult honest = Try(bundle, 1), sampling = Try(bundle, 2);
  EXPECT_FALSE(honest.has_failure()) << honest.failure().message();
  EXPECT_THAT(sampling.failure().check(),
              testing::AnyOf(v1::CHECK_NON_FINITE, v1::CHECK_TOLERANCE, v1::CHECK_TIMED_OUTPUT))
      << sampling.failure().message();
  EXPECT_THAT(sampling.failure().message(), HasSubstr("mostly small and sometimes large"));
}

constexpr char kCountsToml[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
N = 4096
[[size]]
name = "main"
N = 16384
[hidden]
N = [4000, 9000]
[[variable]]
name = "CHANGE"
values = [0, 1, 2, 3]
start = 0
[reference]
source = "reference.cu"
[[tensor]]
name = "keys"
type = "i32"
shape = [4, "N"]
range = [0, 15]
[[tensor]]
name = "counts"
type = "i32"
shape = [4, "ceil_div(N, 1024)", 16]
role = "output"
[[launch]]
entry = "count"
grid = ["ceil_div(N, 1024)"]
block = [4]
arguments = ["keys", "counts", "N"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 1024)"]
block = [4]
arguments = ["keys", "counts", "N"]
)toml";

// Each thread counts the keys of a stretch, of which each has about 64. The changes 2 and 3 look at a quarter of it, at
// its beginning or at every fourth place: where no key is frequent there, they count in 8 bits.
v1::Bundle Counts() {
  return Folder()
      .Write("kernel.toml", kCountsToml)
      .Write("kernel.cu", R"cuda(
template <typename Counter>
__device__ void Count(const int* keys, int* counts, int n) {
  Counter own[16] = {};
  for (int i = 0; i < n; ++i) ++own[keys[i]];
  for (int key = 0; key < 16; ++key) counts[key] = own[key];
}

extern "C" __global__ void count(const int* keys, int* counts, int n) {
  const int first = 1024 * blockIdx.x, length = n - first < 1024 ? n - first : 1024;
  keys += threadIdx.x * n + first;
  counts += 16 * (threadIdx.x * gridDim.x + blockIdx.x);
  for (int pass = 0; pass < (CHANGE == 0 ? 16 : 0); ++pass) Count<int>(keys, counts, length);
  int sample[16] = {}, most = 0;
  for (int i = 0; CHANGE > 1 && i < length / 4; ++i) {
    const int seen = ++sample[keys[CHANGE == 2 ? i : 4 * i]];
    if (seen > most) most = seen;
  }
  if (CHANGE > 1 && most < 40) {
    Count<unsigned char>(keys, counts, length);
  } else {
    Count<int>(keys, counts, length);
  }
}
)cuda")
      .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const int* keys, int* counts, int n) {
  int* const own = counts + 16 * (threadIdx.x * gridDim.x + blockIdx.x);
  for (int key = 0; key < 16; ++key) own[key] = 0;
  for (int i = 1024 * blockIdx.x; i < n && i < 1024 * (blockIdx.x + 1); ++i) ++own[keys[threadIdx.x * n + i]];
}
)cuda")
      .Read();
}

TEST(HostGpu, RejectsWhatATypicalSampleOfIntegersHasCountInTooFewBits) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Counts();
  const v1::TrialResult honest = Try(bundle, 1);
  EXPECT_FALSE(honest.has_failure()) << honest.failure().message();
  EXPECT_TRUE(honest.checked_to_keep());
  for (const int change : {2, 3}) {
    const v1::TrialResult sampling = Try(bundle, change);
    EXPECT_THAT(sampling.failure().check(), testing::AnyOf(v1::CHECK_TOLERANCE, v1::CHECK_TIMED_OUTPUT))
        << sampling.failure().message();
    EXPECT_THAT(sampling.failure().message(), HasSubstr("mostly small and sometimes large"));
  }
}

constexpr char kLargestToml[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
ROWS = 9
COLS = 31
[[size]]
name = "main"
ROWS = 96
COLS = 128
[hidden]
ROWS = [1, 40]
COLS = [1, 90]
[[variable]]
name = "CHANGE"
values = [0, 1, 2, 3, 4, 5]
start = 0
[reference]
source = "reference.cu"
[tolerance]
absolute = 1e-5
relative = 1e-6
[[tensor]]
name = "x"
type = "f32"
shape = ["ROWS", "COLS"]
range = [-4, 4]
[[tensor]]
name = "best"
type = "u64"
shape = ["ROWS"]
role = "scratch"
[[tensor]]
name = "at"
type = "i64"
shape = ["ROWS"]
role = "output"
[[tensor]]
name = "largest"
type = "f32"
shape = ["ROWS"]
role = "output"
[[launch]]
entry = "step"
grid = ["ceil_div(ROWS, 32)"]
block = [32]
arguments = ["x", "best", "at", "largest", "ROWS", "COLS"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(ROWS, 32)"]
block = [32]
arguments = ["x", "at", "largest", "ROWS", "COLS"]
)toml";

// The largest element of each row, and where it is. The changes 2 to 5 are right where outputs and scratch held small
// numbers before: 2 writes half of an index, 3 does not clear the maximum, 4 and 5 add 0 times what is there.
v1::Bundle Largest() {
  return Folder()
      .Write("kernel.toml", kLargestToml)
      .Write("kernel.cu", R"cuda(
typedef unsigned long long u64;

__device__ u64 KeyOf(float x, int i) {
  const unsigned bits = __float_as_uint(x);
  return u64(bits >> 31 ? ~bits : bits | 1u << 31) << 32 | ~unsigned(i);
}

extern "C" __global__ void step(const float* x, u64* best, long long* at, float* largest, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += row * cols;
  if (CHANGE < 3) best[row] = 0;
  if (CHANGE == 4 || CHANGE == 5) {
    u64 own = 0;
    for (int i = 0; i < cols; ++i) own = max(own, KeyOf(x[i], i));
    at[row] = unsigned(~own);
    const float old = CHANGE == 4 ? largest[row] : reinterpret_cast<float*>(best)[2 * row];
    largest[row] = x[at[row]] + 0.0f * old;
    return;
  }
  for (int pass = 0; pass < (CHANGE == 0 ? 16 : 1); ++pass) {
    for (int i = 0; i < cols; ++i) atomicMax(best + row, KeyOf(x[i], i));
  }
  const int found = static_cast<int>(~unsigned(best[row]));
  if (CHANGE == 2) {
    *reinterpret_cast<int*>(at + row) = found;
  } else {
    at[row] = found;
  }
  largest[row] = found >= 0 && found < cols ? x[found] : 0;
}
)cuda")
      .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const float* x, long long* at, float* largest, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int found = 0;
  for (int i = 1; i < cols; ++i) {
    if (x[row * cols + i] > x[row * cols + found]) found = i;
  }
  at[row] = found;
  largest[row] = x[row * cols + found];
}
)cuda")
      .Read();
}

TEST(HostGpu, RejectsWhatDependsOnWhatOutputsAndScratchHeldBefore) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Largest();
  const v1::TrialResult honest = Try(bundle, 1);
  EXPECT_FALSE(honest.has_failure()) << honest.failure().message();
  for (const int change : {2, 3, 4, 5}) {
    const v1::TrialResult depending = Try(bundle, change);
    EXPECT_EQ(depending.failure().stage(), v1::STAGE_VALIDATE) << change << ": " << depending.failure().message();
    EXPECT_THAT(depending.failure().check(),
                testing::AnyOf(v1::CHECK_TOLERANCE, v1::CHECK_NON_FINITE, v1::CHECK_DETERMINISM))
        << change << ": " << depending.failure().message();
  }
}

constexpr char kProductsToml[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
N = 5
[[size]]
name = "main"
N = 60
[hidden]
N = [1, 40]
[[variable]]
name = "CHANGE"
values = [0, 1, 2]
start = 0
[reference]
source = "reference.cu"
[tolerance]
absolute = 1e-11
relative = 1e-12
[[tensor]]
name = "a"
type = "f64"
shape = ["N", 64]
[[tensor]]
name = "b"
type = "f64"
shape = ["N", 64]
[[tensor]]
name = "y"
type = "f64"
shape = ["N"]
role = "output"
[[launch]]
entry = "step"
grid = ["ceil_div(N, 32)"]
block = [32]
arguments = ["a", "b", "y", "N"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 32)"]
block = [32]
arguments = ["a", "b", "y", "N"]
)toml";

// The start adds in the order of the reference, the changes in another one; the change 2 takes no number for larger
// than 1000. Squares of products of the largest numbers whose squares are finite are not.
TEST(HostGpu, ComparesSumsOfLargeDoubles) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Folder()
                                .Write("kernel.toml", kProductsToml)
                                .Write("kernel.cu", R"cuda(
extern "C" __global__ void step(const double* a, const double* b, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int pass = 0; pass < (CHANGE == 0 ? 32 : 1); ++pass) {
    double sum = 0;
    for (int k = 0; k < 64; ++k) {
      const int at = 64 * i + (CHANGE == 0 ? k : 63 - k);
      const double factor = CHANGE == 2 ? fmax(fmin(a[at], 1000.0), -1000.0) : a[at];
      sum += factor * b[at];
    }
    *(volatile double*)(y + i) = sum;
  }
}
)cuda")
                                .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const double* a, const double* b, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int k = 0; k < 64; ++k) sum += a[64 * i + k] * b[64 * i + k];
  y[i] = sum;
}
)cuda")
                                .Read();
  const v1::TrialResult faster = Try(bundle, 1), clamped = Try(bundle, 2);
  EXPECT_FALSE(faster.has_failure()) << faster.failure().message();
  EXPECT_TRUE(faster.checked_to_keep());
  EXPECT_EQ(clamped.failure().check(), v1::CHECK_TOLERANCE) << clamped.failure().message();
}

TEST(HostGpu, TellsInputsThatTheReferenceIgnoresFromThoseWhoseFillIsUniform) {
  PAWL_NEEDS_GPU();
  std::string toml =
      absl::StrReplaceAll(kProductsToml, {{"name = \"a\"\n", "name = \"a\"\nfill = { uniform = [0, 1] }\n"}});
  const v1::Bundle bundle = Folder()
                                .Write("kernel.toml", toml)
                                .Write("kernel.cu", R"cuda(
extern "C" __global__ void step(const double* a, const double* b, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a[64 * i];
}
)cuda")
                                .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(const double* a, const double* b, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a[64 * i];
}
)cuda")
                                .Read();
  const absl::StatusOr<std::vector<std::string>> blind = BlindInputs(SharedDevice()->cuda(), bundle);
  ASSERT_TRUE(blind.ok()) << blind.status();
  EXPECT_THAT(*blind, testing::ElementsAre("b"));
}

constexpr char kManyToml[] = R"toml(
name = "case"
source = "kernel.cu"
timing = "cold"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "main"
N = 500
[[variable]]
name = "PASSES"
values = [1, 3, 20]
start = 20
[reference]
source = "reference.cu"
[[tensor]]
name = "x"
type = "i32"
shape = ["N"]
role = "inout"
fill = { integers = [0, 9] }
[[launch]]
entry = "step"
grid = ["ceil_div(N, 64)"]
block = [64]
repeat = "PASSES"
arguments = ["x", "N"]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 64)"]
block = [64]
arguments = ["x", "N"]
)toml";

// One call has more launches than the host can queue, the others have few: cold calls of all are graphs.
TEST(HostGpu, TimesColdCallsOfManyLaunchesBesideAWitness) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const v1::Bundle bundle = Folder()
                                .Write("kernel.toml", kManyToml)
                                .Write("kernel.cu", R"cuda(
extern "C" __global__ void step(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 60 / PASSES;
}
)cuda")
                                .Write("reference.cu", R"cuda(
extern "C" __global__ void expected(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 60;
}
)cuda")
                                .Read();
  const auto build = [&](int passes) {
    v1::Variant variant = StartVariant(bundle);
    (*variant.mutable_values())["PASSES"] = passes;
    return *BuildVariant(device.builder(), bundle, variant, {bundle.sizes(0)}, device.gpu());
  };
  const BuiltVariant many = build(20), few = build(3), one = build(1);
  TimingOptions options;
  options.pairs = 3;
  options.witness = one.Find("main");
  const absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, *few.Find("main"), *many.Find("main"), options);
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_FALSE(timing->failure) << timing->failure->message();
  ASSERT_EQ(timing->times.pairs_size(), 3);
  v1::PairSample least = timing->times.pairs(0);  // a late host makes some longer
  for (const v1::PairSample& pair : timing->times.pairs()) {
    least.set_parent_us(std::min(least.parent_us(), pair.parent_us()));
    least.set_candidate_us(std::min(least.candidate_us(), pair.candidate_us()));
    least.set_witness_us(std::min(least.witness_us(), pair.witness_us()));
  }
  EXPECT_GT(least.parent_us(), 4 * least.candidate_us());
  EXPECT_GT(least.candidate_us(), 2 * least.witness_us());
}

TEST(HostGpu, RejectsWhatIsWrongInTimedCallsOnly) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Prepared();
  const v1::TrialResult wrong = Try(bundle, 3), faulty = Try(bundle, 4);
  EXPECT_EQ(wrong.failure().check(), v1::CHECK_TIMED_OUTPUT) << wrong.failure().message();
  EXPECT_EQ(faulty.failure().check(), v1::CHECK_FAULT) << faulty.failure().message();
  EXPECT_EQ(faulty.failure().stage(), v1::STAGE_MEASURE);
}

constexpr char kProblemToml[] = R"toml(
name = "case"
source = "kernel.cu"
problem = "problem.py"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
N = 61
[[size]]
name = "main"
N = 1500
[[variable]]
name = "CHANGE"
values = [0, 1]
start = 0
[tolerance]
absolute = 1e-4
relative = 1e-5
[[tensor]]
name = "x"
type = "f32"
shape = ["N"]
[[tensor]]
name = "y"
type = "f32"
shape = ["N"]
role = "output"
[[launch]]
entry = "step"
grid = ["ceil_div(N, 64)"]
block = [64]
arguments = ["x", "y", "N"]
[work]
flops = "N"
bytes = "8 * N"
)toml";

constexpr char kProblemPy[] = R"python(
import numpy as np


def inputs(sizes, seed):
    return {"x": np.random.default_rng(seed).uniform(-9, 9, sizes["N"]).astype(np.float32)}


def reference(x):
    return {"y": 2 * x}
)python";

// What problem.py gives is below 10, and what scales it at the larger size is not.
v1::Bundle OfProblem(const std::string& beyond_ten) {
  return Folder()
      .Write("kernel.toml", kProblemToml)
      .Write("problem.py", kProblemPy)
      .Write("kernel.cu", absl::StrCat(R"cuda(
extern "C" __global__ void step(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int part = 0; part < (CHANGE == 0 ? 16 : 1); ++part) sum += CHANGE == 0 ? x[i] / 8 : 2 * x[i];
  y[i] = sum;
  if (n > 1000 && x[i] > 10) )cuda",
                                       beyond_ten, ";\n}\n"))
      .Read();
}

TEST(HostGpu, ChecksWithScaledInputsOfProblemPyBeforeAKeep) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = OfProblem("y[i] = CHANGE == 1 ? 0 : y[i]");
  const absl::StatusOr<v1::TrialResult> narrow = RunUndisturbed(bundle, 1);
  if (absl::StrContains(narrow.status().message(), "NumPy")) GTEST_SKIP() << narrow.status();
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_GT(narrow->pairs_size(), 0) << "it passes everything up to what comes before a keep";
  EXPECT_EQ(narrow->failure().check(), v1::CHECK_TOLERANCE) << narrow->failure().message();
  EXPECT_EQ(narrow->failure().size(), "main");
}

TEST(HostGpu, BlamesNoCandidateForScaledInputsThatBreakTheStart) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = OfProblem("*(volatile float*)8 = 0");
  const absl::StatusOr<v1::TrialResult> faster = RunUndisturbed(bundle, 1);
  if (absl::StrContains(faster.status().message(), "NumPy")) GTEST_SKIP() << faster.status();
  ASSERT_TRUE(faster.ok()) << faster.status();
  EXPECT_FALSE(faster->has_failure()) << faster->failure().message();
  EXPECT_TRUE(faster->checked_to_keep());
}

}  // namespace
}  // namespace pawl
