#include "worker/device/hand_off_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HandOffCheckTest : public testing::Test {
 protected:
  HandOffCheckTest() {
    gpu_.set_uuid("GPU-1");
    toolkit_.root = "/opt/cuda";
    toolkit_.nvcc = "/opt/cuda/bin/nvcc";
  }

  void Add(const std::string& path, const std::string& text) {
    v1::SourceFile& file = *files_.Add();
    file.set_path(path);
    file.set_text(text);
  }

  HandOffHost Host() { return {.gpu = gpu_, .toolkit = toolkit_, .sandboxing = sandboxing_}; }

  std::vector<v1::HandOffCheck> Check(const HandOffHost& host) {
    const absl::StatusOr<std::vector<v1::HandOffCheck>> checks = CheckHandOff(bundle_, files_, host);
    EXPECT_TRUE(checks.ok()) << checks.status();
    return checks.ok() ? *checks : std::vector<v1::HandOffCheck>();
  }

  v1::GpuInfo gpu_;
  Toolkit toolkit_;
  Sandboxing sandboxing_;  // none: the scripts run as they are
  v1::Bundle bundle_;
  HandOffFiles files_;
};

TEST_F(HandOffCheckTest, RunsEachFormInOneFolderWithAnEnvironmentOfItsOwn) {
  setenv("PAWL_SECRET_OF_THE_WORKER", "yes", 1);
  Add("source/kernel.cu", "__global__ void k() {}\n");
  Add("check_program.sh",
      "grep -c global source/kernel.cu\necho built > built\necho \"gpu $CUDA_VISIBLE_DEVICES\"\nenv\n");
  Add("check_cubin.sh", "cat built\n");
  const std::vector<v1::HandOffCheck> checks = Check(Host());
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].form(), "program");
  EXPECT_TRUE(checks[0].passed()) << checks[0].text();
  EXPECT_THAT(checks[0].text(), HasSubstr("gpu GPU-1"));
  EXPECT_THAT(checks[0].text(), HasSubstr("PATH=/opt/cuda/bin:"));
  EXPECT_THAT(checks[0].text(), Not(HasSubstr("PAWL_SECRET_OF_THE_WORKER")));
  EXPECT_EQ(checks[1].form(), "cubin");
  EXPECT_TRUE(checks[1].passed());
  EXPECT_EQ(checks[1].text(), "built");
}

TEST_F(HandOffCheckTest, TellsTheEndOfWhatAFailedFormPrinted) {
  Add("check_extension.sh", "yes this is long | head -n 100000\necho 'no module named torch' >&2\nexit 3\n");
  Add("check_program.sh", "echo fine\n");
  const std::vector<v1::HandOffCheck> checks = Check(Host());
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_FALSE(checks[0].passed());
  EXPECT_THAT(checks[0].text(), StartsWith("it exited with code 3: "));
  EXPECT_THAT(checks[0].text(), testing::EndsWith("no module named torch"));
  EXPECT_LT(checks[0].text().size(), 2000u);
  EXPECT_TRUE(checks[1].passed()) << "the others are tried all the same";
}

TEST_F(HandOffCheckTest, EndsAFormThatHangs) {
  Add("check_program.sh", "sleep 60\n");
  HandOffHost host = Host();
  host.deadline = absl::Milliseconds(200);
  const std::vector<v1::HandOffCheck> checks = Check(host);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0].passed());
  EXPECT_THAT(checks[0].text(), HasSubstr("by its deadline"));
}

TEST_F(HandOffCheckTest, WritesNothingOutsideOfItsFolder) {
  Add("check_program.sh", "echo ran\n");
  Add("../escaped", "x");
  HandOffHost host = Host();
  int runs = 0;
  host.run = [&](const ProcessOptions&) -> absl::StatusOr<ProcessResult> {
    ++runs;
    return ProcessResult();
  };
  const std::vector<v1::HandOffCheck> checks = Check(host);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0].passed());
  EXPECT_THAT(checks[0].text(), HasSubstr("../escaped lies outside of the folder"));
  EXPECT_EQ(runs, 0);
}

TEST_F(HandOffCheckTest, StopsWhenItIsTold) {
  Add("check_program.sh", "echo ran\n");
  HandOffHost host = Host();
  host.stopped = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(CheckHandOff(bundle_, files_, host).status()));
}

TEST_F(HandOffCheckTest, SaysThatAMachineCouldNotRunIt) {
  Add("check_program.sh", "echo ran\n");
  HandOffHost host = Host();
  std::vector<std::string> argv;
  host.run = [&](const ProcessOptions& options) -> absl::StatusOr<ProcessResult> {
    argv = options.argv;
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(options.directory) / "check_program.sh"));
    return absl::UnavailableError("no more processes");
  };
  const std::vector<v1::HandOffCheck> checks = Check(host);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].text(), "no more processes");
  EXPECT_THAT(argv, Contains("check_program.sh"));
}

TEST_F(HandOffCheckTest, HasNoChecksWithoutScripts) {
  Add("source/kernel.cu", "");
  Add("source/check_program.sh", "exit 1\n");
  EXPECT_THAT(Check(Host()), IsEmpty());
}

}  // namespace
}  // namespace pawl
