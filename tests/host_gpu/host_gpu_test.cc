// Whole trials of small kernels on the host GPU: honest changes pass every check on the way to a keep, others are
// rejected by the check that is meant for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/device/job_file.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/trial/timer.h"
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
values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
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

v1::TrialResult Try(int change) {
  const v1::Bundle bundle = ScaledAddition();
  const absl::StatusOr<v1::TrialResult> result = RunAgainst(bundle, Change(bundle, change), StartVariant(bundle));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : v1::TrialResult();
}

v1::Check CheckOf(int change) { return Try(change).failure().check(); }

TEST(HostGpu, TakesAFasterChangeAllTheWayToAKeep) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult faster = Try(1);
  EXPECT_FALSE(faster.has_failure()) << faster.failure().message();
  EXPECT_LT(faster.warm_us(), 0.7 * faster.parent_warm_us());
  EXPECT_LT(faster.cold_us(), 0.7 * faster.parent_cold_us());
  EXPECT_GT(faster.confirming_pairs_size(), 0);
  EXPECT_TRUE(faster.checked_to_keep());
}

TEST(HostGpu, RevertsAChangeThatIsNoFaster) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult same = Try(0);
  EXPECT_FALSE(same.has_failure()) << same.failure().message();
  EXPECT_FALSE(same.checked_to_keep());
  EXPECT_NEAR(same.warm_us() / same.parent_warm_us(), 1, 0.1);
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

TEST(HostGpu, PlacesTensorsOfASmallAlignAtOddMultiplesOfIt) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult careless = Try(7), careful = Try(8);
  EXPECT_EQ(careless.failure().check(), v1::CHECK_FAULT) << careless.failure().message();
  EXPECT_FALSE(careful.has_failure()) << careful.failure().message();
  EXPECT_TRUE(careful.checked_to_keep());
}

TEST(HostGpu, GoesOnAfterAFault) {
  PAWL_NEEDS_GPU();
  EXPECT_EQ(CheckOf(10), v1::CHECK_FAULT);
  EXPECT_EQ(CheckOf(2), v1::CHECK_TOLERANCE);
}

TEST(HostGpu, TimesCallsThatLeaveGlobalsChangedByThemselves) {
  PAWL_NEEDS_GPU();
  const v1::TrialResult counts = Try(11);
  EXPECT_FALSE(counts.has_failure()) << counts.failure().message();
  ASSERT_GT(counts.pairs_size(), 0);
  EXPECT_TRUE(counts.pairs(0).single());
}

}  // namespace
}  // namespace pawl
