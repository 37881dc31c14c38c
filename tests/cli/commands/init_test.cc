// `pawl init` as a user calls it, and `pawl check` on what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/draft/read/libclang.h"
#include "tests/cli/pawl_program.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class InitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const absl::StatusOr<clang::Functions> loaded = clang::Load(); !loaded.ok()) GTEST_SKIP() << loaded.status();
    std::ofstream(folder_.path() / "scale.cu")
        << "extern \"C\" __global__ void scale(const float* x, float* y, int n) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i];\n}\n";
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  TemporaryFolder folder_{"pawl-init-"};
};

TEST_F(InitTest, WritesABundleThatCheckTakesOnceReferenceIsWritten) {
  const ProcessResult result = Pawl({"init", Path("scale.cu"), "--output", Path("bundle")});
  ASSERT_TRUE(result.ok()) << result.err;
  EXPECT_EQ(result.out, Path("bundle") + "\n");
  EXPECT_THAT(result.err, HasSubstr("TODOs in kernel.toml and problem.py"));
  EXPECT_TRUE(std::filesystem::exists(Path("bundle/scale.cu")));
  EXPECT_TRUE(std::filesystem::exists(Path("bundle/problem.py")));
  const ProcessResult drafted = Pawl({"check", Path("bundle"), "--no-build", "--gpu", "h200"});
  EXPECT_EQ(drafted.exit_code, 1) << "it can't be run";
  EXPECT_THAT(drafted.err, ContainsRegex("problem.py:[0-9]+: reference\\(\\) raises NotImplementedError"));
  EXPECT_THAT(drafted.err, ContainsRegex("warning: [0-9]+ TODOs are left: kernel.toml:[0-9]+, kernel.toml:"));
  EXPECT_THAT(drafted.out, HasSubstr("launches of the start variant")) << "the rest is said all the same";

  std::string text = Slurp(Path("bundle/problem.py"));
  const std::string raise = "    raise NotImplementedError(\"reference() in problem.py\")\n";
  ASSERT_NE(text.find(raise), std::string::npos) << text;
  std::ofstream(Path("bundle/problem.py")) << text.replace(text.find(raise), raise.size(), "    y = 2 * x\n");
  const ProcessResult written = Pawl({"check", Path("bundle"), "--no-build", "--gpu", "h200"});
  EXPECT_TRUE(written.ok()) << written.err;
  EXPECT_THAT(written.err, HasSubstr("TODOs are left")) << "they do not hinder a run";
}

TEST_F(InitTest, CheckSaysNothingOfAReferenceThatRaisesSometimes) {
  ASSERT_TRUE(Pawl({"init", Path("scale.cu"), "--output", Path("bundle")}).ok());
  std::ofstream(Path("bundle/problem.py"))
      << "def inputs(sizes, seed):\n    return {}\n\n\ndef reference(x, **rest):\n    if x.ndim > 1:\n"
         "        raise NotImplementedError(\"only vectors\")\n    if x.ndim == 1: return {\"y\": 2 * x}\n"
         "    raise NotImplementedError(\"only vectors\")\n\n\ndef unused():\n"
         "    raise NotImplementedError\n";
  const ProcessResult check = Pawl({"check", Path("bundle"), "--no-build", "--gpu", "h200"});
  EXPECT_TRUE(check.ok()) << check.err;
}

TEST_F(InitTest, CheckSeesADraftedReferenceBehindOtherStatements) {
  ASSERT_TRUE(Pawl({"init", Path("scale.cu"), "--output", Path("bundle")}).ok());
  std::ofstream(Path("bundle/problem.py"))
      << "def inputs(sizes, seed):\n    return {}\n\n\ndef reference(**rest):\n    in_ = rest[\"in\"]\n"
         "    raise NotImplementedError(\"reference() in problem.py\")\n    return {\"y\": in_}\n";
  const ProcessResult check = Pawl({"check", Path("bundle"), "--no-build", "--gpu", "h200"});
  EXPECT_THAT(check.err, ContainsRegex("problem.py:7: reference\\(\\) raises NotImplementedError"));
}

TEST_F(InitTest, CallsTheModelOfAReferenceThatHasOne) {
  std::ofstream(Path("model.py"))
      << "import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self, k):\n        self.k = k\n\n"
         "    def forward(self, x):\n        return x * self.k\n\n\ndef get_inputs():\n    return "
         "[torch.randn(64)]\n\n\n"
         "def get_init_inputs():\n    return [2.0]\n";
  const ProcessResult result =
      Pawl({"init", Path("scale.cu"), "--reference", Path("model.py"), "--output", Path("bundle")});
  ASSERT_TRUE(result.ok()) << result.err;
  EXPECT_THAT(Slurp(Path("bundle/problem.py")), HasSubstr("return {\"y\": Model(*get_init_inputs())(x)}"));
}

TEST_F(InitTest, MarksWhatCheckWouldRefuse) {
  std::ofstream(folder_.path() / "empty.cu") << "__device__ int counter;\n__global__ void k() { counter = 1; }\n";
  const ProcessResult result = Pawl({"init", Path("empty.cu"), "--output", Path("bundle")});
  ASSERT_TRUE(result.ok()) << result.err;
  EXPECT_THAT(result.err, HasSubstr("do not fit the rest: see the first TODOs in kernel.toml"));
  EXPECT_THAT(Slurp(Path("bundle/kernel.toml")),
              HasSubstr("# TODO: `pawl check` refuses this: there is no [[tensor]]; expected at least one\n"));
}

TEST_F(InitTest, OverwritesNothing) {
  ASSERT_TRUE(Pawl({"init", Path("scale.cu"), "--output", Path("bundle")}).ok());
  const ProcessResult again = Pawl({"init", Path("scale.cu"), "--output", Path("bundle")});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("kernel.toml is there already"));
}

TEST_F(InitTest, WritesBesideTheSource) {
  ASSERT_TRUE(Pawl({"init", Path("scale.cu"), "--output", folder_.path().string()}).ok());
  EXPECT_TRUE(std::filesystem::exists(Path("kernel.toml")));
}

TEST_F(InitTest, AMistakeIsOneLine) {
  const ProcessResult result = Pawl({"init", Path("missing.cu")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("missing.cu can't be read; does it exist?"));
  EXPECT_EQ(Pawl({"init"}).exit_code, 2);
}

TEST_F(InitTest, RefusesAPipe) {
  ASSERT_EQ(mkfifo(Path("pipe.cu").c_str(), 0600), 0);
  const auto began = std::chrono::steady_clock::now();
  const ProcessResult source = Pawl({"init", Path("pipe.cu")});
  EXPECT_EQ(source.exit_code, 1);
  EXPECT_THAT(source.err, HasSubstr("pipe.cu is not a regular file: save the source in a file and name that"));
  const ProcessResult reference = Pawl({"init", Path("scale.cu"), "--reference", Path("pipe.cu")});
  EXPECT_EQ(reference.exit_code, 1);
  EXPECT_THAT(reference.err, HasSubstr("pipe.cu is not a regular file: save the reference in a file and name that"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20)) << "nothing waited for a writer";
}

}  // namespace
}  // namespace pawl
