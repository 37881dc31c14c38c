// On a real GPU: nothing in the sandbox of a runner or a tool gets out, and CUDA, ncu and compute-sanitizer work in it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "tests/worker/sandbox/sandbox_probes.h"
#include "worker/device/baseline.h"
#include "worker/device/profiler.h"
#include "worker/device/sanitizer.h"
#include "worker/process/subprocess.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// Copied to where everybody may run it.
class SandboxOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_GPU();
    if (!SharedDevice()->cuda().sandboxing().on()) {
      GTEST_SKIP() << SharedDevice()->cuda().sandboxing().description();
    }
    root_ = fs::canonical(folder_.path());
    fs::create_directory(root_ / "hidden");
    fs::create_directory(root_ / "job");
    fs::copy_file(fs::read_symlink("/proc/self/exe").parent_path() / "pawl-sandbox-probe", root_ / "job/probe");
  }
  const Sandboxing& sandboxing() const { return SharedDevice()->cuda().sandboxing(); }
  std::string job() const { return root_ / "job"; }

  static v1::Bundle Read(const std::string& path) {
    BundleReading reading = ReadBundle(fs::path(getenv("PAWL_SOURCE_DIR")) / path);
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    return reading.bundle;
  }

  const TemporaryFolder folder_{"pawl-sandbox-"};
  fs::path root_;
};

TEST_F(SandboxOnGpu, DeniesTheTwelveProbes) {
  const SandboxProbes probes(root_ / "hidden", job() + "/probe");
  probes.ExpectSuccessOutside();
  probes.ExpectAllDenied([this](const auto& argv) { return sandboxing().Tool(argv, job()); }, job());
  probes.ExpectAllDenied([this](const auto& argv) { return sandboxing().Baseline(argv, job(), job()); }, job());
}

TEST_F(SandboxOnGpu, DeniesTheTwelveProbesToARunner) {
  Sandboxing with_probe = Sandboxing::Make({}, job() + "/probe", false).value();
  const SandboxProbes probes(root_ / "hidden", job() + "/probe");
  probes.ExpectAllDenied([&](const auto& argv) { return with_probe.Runner(argv, 3); }, "/tmp");
}

TEST_F(SandboxOnGpu, LetsCandidatesRunInside) {
  CudaDevice& device = SharedDevice()->cuda();
  EXPECT_TRUE(SharedDevice()->device().sandboxed());
  const v1::Bundle bundle = Read("tests/cheats/honest_softmax");
  absl::StatusOr<BuiltVariant> built = BuildVariant(device.builder(), bundle, StartVariant(bundle),
                                                    {bundle.sizes().begin(), bundle.sizes().end()}, device.gpu());
  ASSERT_TRUE(built.ok()) << built.status();
  absl::StatusOr<Validation> fine = Validate(device, bundle, *built, {});
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_FALSE(fine->failure.has_value()) << fine->failure->message();
  // The process that was asked is the one outside; its children are in another pid namespace.
  ProcessOptions namespaces;
  namespaces.argv = {"/bin/sh", "-c",
                     "readlink /proc/self/ns/net; for p in $(pgrep -x pawl-runner); do readlink /proc/$p/ns/net; done"};
  const ProcessResult seen = RunProcess(namespaces).value();
  const std::string own = seen.out.substr(0, seen.out.find('\n') + 1);
  EXPECT_EQ(seen.out.find(own, 1), std::string::npos) << "a runner shares this network: " << seen.out;

  const BuiltSize* size = built->Find(bundle.goal().size());
  ASSERT_NE(size, nullptr);
  if (device.toolkit().compute_sanitizer.empty()) return;
  absl::StatusOr<std::unique_ptr<SanitizerRun>> tools = StartSanitizing(device, {size}, SanitizerTools::kAll);
  ASSERT_TRUE(tools.ok()) << tools.status();
  const absl::StatusOr<Sanitizing> clean = (*tools)->Wait();
  ASSERT_TRUE(clean.ok()) << clean.status();
  EXPECT_EQ(clean->called, 1u) << "what the runner prints is not understood";
  EXPECT_FALSE(clean->failure.has_value()) << clean->failure->message();
}

TEST_F(SandboxOnGpu, LetsNcuReadCountersInside) {
  CudaDevice& device = SharedDevice()->cuda();
  if (device.toolkit().ncu.empty()) GTEST_SKIP() << "needs ncu";
  NcuProfiler profiler(device);
  const absl::Status counters = TryCounters(device, profiler);
  EXPECT_TRUE(counters.ok()) << counters;
}

TEST_F(SandboxOnGpu, LetsABaselineUseTheGpuInside) {
  ProcessOptions options;
  options.argv = sandboxing().Baseline(
      {"python3", "-c", "import torch; print((torch.ones(8, device='cuda') * 2).sum().item())"}, job(), job());
  options.timeout = absl::Minutes(2);
  const ProcessResult result = RunProcess(options).value();
  if (result.err.find("No module named 'torch'") != std::string::npos) GTEST_SKIP() << "needs PyTorch";
  EXPECT_EQ(result.out, "16.0\n") << result.err;
}

}  // namespace
}  // namespace pawl
