#include "cli/output/winner_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/bundle_reader.h"
#include "kernels/space.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::filesystem::path Source() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

// Attention with two launches, a scalar and more shared memory than a kernel gets unasked.
class WinnerFolderTest : public testing::Test {
 protected:
  WinnerFolderTest() {
    *best_.mutable_bundle() = ReadBundle(Source() / "kernels/attention").bundle;
    v1::Iteration& iteration = *best_.mutable_iteration();
    iteration.set_name("campaigns/7/iterations/12");
    iteration.set_number(12);
    iteration.set_time_us(2.5);
    iteration.set_device("NVIDIA H200");
    *iteration.mutable_variant() = StartVariant(best_.bundle()).values();
    (*iteration.mutable_variant())["KV_SPLITS"] = 4;
    iteration.mutable_gpu()->set_name("NVIDIA H200");
    iteration.mutable_gpu()->set_compute_major(9);
    campaign_.mutable_spec()->mutable_goal()->set_size("main");
    campaign_.set_speedup_over_start(8);
    campaign_.set_speedup_over_baseline(2.4);
    campaign_.set_baseline_us(6);
    campaign_.set_baseline("torch");
  }

  std::string Find(const std::string& name) const {
    absl::StatusOr<std::vector<WinnerFile>> files =
        WinnerFiles(best_, campaign_, best_.bundle().source().text(), {best_.iteration()});
    EXPECT_TRUE(files.ok()) << files.status();
    for (const WinnerFile& file : *files) {
      if (file.name == name) return file.text;
    }
    return "";
  }

  v1::BestVariant best_;
  v1::Campaign campaign_;
};

TEST_F(WinnerFolderTest, FixesTheVariablesInTheSource) {
  const std::string source = Find("attention.cu");
  EXPECT_THAT(source, HasSubstr("#define KV_SPLITS 4\n"));
  EXPECT_THAT(source, HasSubstr("8.000x over the start variant, 2.400x over torch"));
  EXPECT_THAT(source, HasSubstr(best_.bundle().source().text()));
  const std::string build = Find("build.sh");
  EXPECT_THAT(build, HasSubstr("nvcc -cubin -arch=sm_90a --std=c++17"));
  EXPECT_THAT(build, HasSubstr("-o attention.cubin attention.cu"));
  EXPECT_THAT(build, Not(HasSubstr("-DKV_SPLITS")));
}

TEST_F(WinnerFolderTest, WritesALaunchExampleThatCompiles) {
  const TemporaryFolder folder("pawl-winner-");
  std::ofstream(folder.path() / "launch.cc") << Find("launch.cc");
  ProcessOptions options;
  options.argv = {"g++",
                  "-std=c++17",
                  "-Wall",
                  "-Werror",
                  "-fsyntax-only",
                  "-I" + (Source() / "tests/cli/golden/cuda").string(),
                  (folder.path() / "launch.cc").string()};
  absl::StatusOr<ProcessResult> compiled = RunProcess(options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->exit_code, 0) << compiled->err << Find("launch.cc");
}

TEST_F(WinnerFolderTest, LaunchesWhatThePlanLaunches) {
  const std::string launch = Find("launch.cc");
  EXPECT_THAT(launch, HasSubstr("cuModuleGetFunction(&entry0, module, \"attention_forward\")"));
  EXPECT_THAT(launch, HasSubstr("cuLaunchKernel(entry0, 2, 1, 4, 128, 1, 1, "));
  EXPECT_THAT(launch, HasSubstr("\"attention_combine\""));
  EXPECT_THAT(launch, HasSubstr("= 0.125f;  // scale"));
}

TEST_F(WinnerFolderTest, OverwritesNothing) {
  const TemporaryFolder folder("pawl-winner-");
  const std::vector<WinnerFile> files = {{"a.cu", "new"}, {"build.sh", "new", true}};
  std::ofstream(folder.path() / "build.sh") << "mine";
  EXPECT_TRUE(absl::IsAlreadyExists(WriteWinner(files, folder.path().string())));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.cu"));
  const std::filesystem::path fresh = folder.path() / "deep/fresh";
  EXPECT_TRUE(WriteWinner(files, fresh.string()).ok());
  std::stringstream text;
  text << std::ifstream(fresh / "a.cu").rdbuf();
  EXPECT_EQ(text.str(), "new");
  EXPECT_EQ(std::filesystem::status(fresh / "build.sh").permissions() & std::filesystem::perms::owner_exec,
            std::filesystem::perms::owner_exec);
}

}  // namespace
}  // namespace pawl
