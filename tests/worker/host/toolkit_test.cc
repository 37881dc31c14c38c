#include "worker/host/toolkit.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace pawl {
namespace {

namespace fs = std::filesystem;

class ToolkitSearch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::path(testing::TempDir()) / "pawl-toolkit-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = fs::canonical(pattern);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Touch(const std::string& path) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x";
    chmod(file.c_str(), 0755);
    return file;
  }

  fs::path root_;
};

TEST_F(ToolkitSearch, TellsPytorchsVersionWithoutImportingIt) {
  fs::create_directories(root_ / "torch");
  std::ofstream(root_ / "torch/__init__.py") << "raise RuntimeError('imported')\n";
  std::ofstream(root_ / "torch/version.py") << "__version__ = '2.11.0+cu130'\n";
  setenv("PYTHONPATH", root_.c_str(), 1);
  EXPECT_EQ(ToolVersions(Toolkit()).pytorch(), "2.11.0+cu130");
  std::ofstream(root_ / "torch/version.py") << "";
  EXPECT_EQ(ToolVersions(Toolkit()).pytorch(), "");
  unsetenv("PYTHONPATH");
}

TEST_F(ToolkitSearch, FindsThePartsBelowCudaHome) {
  const std::string nvcc = Touch("bin/nvcc"), nvrtc = Touch("lib64/libnvrtc.so.12"), ncu = Touch("bin/ncu");
  const std::string sanitizer = Touch("compute-sanitizer/compute-sanitizer");
  Touch("include/cuda_fp16.h");
  const Toolkit toolkit = FindToolkit({{"CUDA_HOME", root_}, {"PATH", "/no/such/folder"}});
  EXPECT_EQ(toolkit.root, root_);
  EXPECT_EQ(toolkit.nvcc, nvcc);
  EXPECT_EQ(toolkit.nvrtc, nvrtc);
  EXPECT_EQ(toolkit.include, root_ / "include");
  EXPECT_EQ(toolkit.ncu, ncu);
  EXPECT_EQ(toolkit.compute_sanitizer, sanitizer);
}

TEST_F(ToolkitSearch, FindsTheToolkitOfTheNvccOnThePathThroughLinks) {
  Touch("cuda-99.0/bin/nvcc");
  const std::string nvrtc = Touch("cuda-99.0/targets/x86_64-linux/lib/libnvrtc.so.13");
  Touch("cuda-99.0/targets/x86_64-linux/include/cuda_fp16.h");
  fs::create_directory(root_ / "bin");
  fs::create_symlink(root_ / "cuda-99.0/bin/nvcc", root_ / "bin/nvcc");
  const Toolkit toolkit = FindToolkit({{"PATH", (root_ / "bin").string()}});
  EXPECT_EQ(toolkit.root, root_ / "cuda-99.0");
  EXPECT_EQ(toolkit.nvrtc, nvrtc);
  EXPECT_EQ(toolkit.include, root_ / "cuda-99.0/targets/x86_64-linux/include");
}

TEST_F(ToolkitSearch, PrefersCudaHomeToThePath) {
  const std::string home = Touch("home/bin/nvcc");
  Touch("other/bin/nvcc");
  EXPECT_EQ(FindToolkit({{"PATH", root_ / "other/bin"}, {"CUDA_HOME", root_ / "home"}}).nvcc, home);
}

TEST_F(ToolkitSearch, TakesTheLibraryThatComesWithPyTorch) {
  const std::string nvrtc = Touch("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  Touch("nvidia/cuda_runtime/include/cuda_fp16.h");
  const Toolkit toolkit = FindToolkit({{"PAWL_NVRTC", nvrtc}});
  EXPECT_EQ(toolkit.nvrtc, nvrtc);
  EXPECT_EQ(toolkit.include, root_ / "nvidia/cuda_runtime/include");
}

TEST_F(ToolkitSearch, SaysWhereItLooked) {
  const std::vector<std::string> places = FindToolkit({{"CUDA_HOME", root_ / "missing"}}).looked_in;
  EXPECT_NE(std::find(places.begin(), places.end(), root_ / "missing"), places.end());
  EXPECT_NE(std::find(places.begin(), places.end(), "/usr/local/cuda"), places.end());
}

}  // namespace
}  // namespace pawl
