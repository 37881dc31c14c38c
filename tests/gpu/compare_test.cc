// Two bundles of one contract, compared without a campaign on a real GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/contract.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/process/temporary_folder.h"
#include "worker/trial/side_by_side.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kContract[] = R"toml(
name = "twice"
source = "twice.cu"
[goal]
size = "main"
speedup = 2
[[size]]
name = "tiny"
N = 1000
[[size]]
name = "main"
N = 33554432
[[tensor]]
name = "in"
type = "f32"
shape = ["N"]
fill = "normal"
range = [-1000, 1000]
[[tensor]]
name = "out"
type = "f32"
shape = ["N"]
role = "output"
[hidden]
N = [1, 5000]
[reference]
source = "reference.cu"
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = ["in", "out", "N"]
[tolerance]
absolute = 0.001
relative = 0.0001
)toml";

constexpr char kReference[] = R"cuda(
extern "C" __global__ void expected(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
)cuda";

// By way of a scratch tensor, in two launches.
constexpr char kSlowToml[] = R"toml(
[[tensor]]
name = "between"
type = "f32"
shape = ["N"]
role = "scratch"
[[launch]]
entry = "step"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = ["in", "between", "N"]
[[launch]]
entry = "step"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = ["between", "out", "N"]
)toml";
constexpr char kSlow[] = R"cuda(
extern "C" __global__ void step(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 1.41421356f * from[i];
}
)cuda";

// In one, with a variable.
constexpr char kFastToml[] = R"toml(
[[variable]]
name = "BLOCK"
values = [128, 256]
start = 256
[[launch]]
entry = "twice"
grid = ["ceil_div(N, BLOCK)"]
block = ["BLOCK"]
arguments = ["in", "out", "N"]
)toml";
constexpr char kFast[] = R"cuda(
extern "C" __global__ void twice(const float* in, float* out, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
)cuda";

ComparedSide Side(const std::string& toml, const std::string& source) {
  const TemporaryFolder folder("pawl-compare-");
  std::ofstream(folder.path() / "kernel.toml") << kContract << toml;
  std::ofstream(folder.path() / "twice.cu") << source;
  std::ofstream(folder.path() / "reference.cu") << kReference;
  BundleReading reading = ReadBundle(folder.path());
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  ComparedSide side;
  side.variant = StartVariant(reading.bundle);
  side.bundle = std::make_shared<const v1::Bundle>(std::move(reading.bundle));
  return side;
}

class Nobody : public TrialObserver {
 public:
  void Report(v1::Stage, int, int, const std::string&) override {}
  bool stopped() const override { return false; }
};

SideBySide Compare(const ComparedSide& base, const ComparedSide& candidate,
                   const std::vector<std::string>& sizes = {"main"}) {
  Nobody nobody;
  absl::StatusOr<SideBySide> compared = CompareSides(SharedDevice()->cuda(), base, candidate, sizes, nobody);
  EXPECT_TRUE(compared.ok()) << compared.status();
  return compared.ok() ? *std::move(compared) : SideBySide();
}

TEST(CompareSides, FindsFewerLaunchesWithoutScratchFasterAndTheOtherWayRoundSlower) {
  PAWL_NEEDS_GPU();
  const ComparedSide slow = Side(kSlowToml, kSlow), fast = Side(kFastToml, kFast);
  ASSERT_EQ(ContractDifference(*slow.bundle, *fast.bundle, "slow", "fast"), "");
  const SideBySide faster = Compare(slow, fast);
  EXPECT_FALSE(faster.base_failure.has_value()) << faster.base_failure->message();
  EXPECT_FALSE(faster.candidate_failure.has_value()) << faster.candidate_failure->message();
  ASSERT_EQ(faster.sizes.size(), 1u);
  EXPECT_EQ(faster.sizes[0].comparison.result(), v1::FASTER) << faster.sizes[0].comparison.reason();
  EXPECT_GE(faster.sizes[0].comparison.processes(), 2);
  EXPECT_GT(faster.sizes[0].base_us, 1.5 * faster.sizes[0].candidate_us);
  EXPECT_EQ(faster.sizes[0].base.launches_size(), 2);
  EXPECT_EQ(faster.sizes[0].candidate.launches_size(), 1);
  const SideBySide slower = Compare(fast, slow);
  ASSERT_EQ(slower.sizes.size(), 1u);
  EXPECT_EQ(Overall(slower), v1::SLOWER) << slower.sizes[0].comparison.reason();
}

TEST(CompareSides, TimesEverySizeThatIsAskedFor) {
  PAWL_NEEDS_GPU();
  const SideBySide compared = Compare(Side(kSlowToml, kSlow), Side(kFastToml, kFast), {"tiny", "main"});
  ASSERT_EQ(compared.sizes.size(), 2u);
  EXPECT_EQ(compared.sizes[0].size, "tiny");
  EXPECT_EQ(compared.sizes[1].comparison.result(), v1::FASTER) << compared.sizes[1].comparison.reason();
}

TEST(CompareSides, DoesNotTimeWhatIsWrong) {
  PAWL_NEEDS_GPU();
  const std::string wrong = absl::StrReplaceAll(kFast, {{"2 * in[i]", "3 * in[i]"}});
  const SideBySide compared = Compare(Side(kFastToml, kFast), Side(kFastToml, wrong));
  EXPECT_FALSE(compared.base_failure.has_value());
  ASSERT_TRUE(compared.candidate_failure.has_value());
  EXPECT_EQ(compared.candidate_failure->check(), v1::CHECK_TOLERANCE) << compared.candidate_failure->message();
  EXPECT_THAT(compared.sizes, IsEmpty());
}

TEST(CompareSides, FindsACommentTheSame) {
  PAWL_NEEDS_GPU();
  const SideBySide compared =
      Compare(Side(kFastToml, kFast), Side(kFastToml, absl::StrCat("// faster, surely\n", kFast)));
  ASSERT_EQ(compared.sizes.size(), 1u);
  EXPECT_EQ(Overall(compared), v1::SAME);
  EXPECT_THAT(compared.sizes[0].comparison.reason(), HasSubstr("The same"));
}

}  // namespace
}  // namespace pawl
