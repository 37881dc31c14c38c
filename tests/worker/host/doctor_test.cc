#include <gtest/gtest.h>

#include "worker/build/builder.h"
#include "worker/host/machine.h"

namespace pawl {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

Asked Answers(std::string out) {
  Asked asked;
  asked.found = asked.ok = true;
  asked.out = std::move(out);
  return asked;
}

Asked Fails(std::string err) {
  Asked asked;
  asked.found = true;
  asked.err = std::move(err);
  return asked;
}

// Texts are what the tools of CUDA 13.0 print.
Machine FineMachine() {
  Machine m;
  m.driver.cuda_version = 13000;
  m.driver.gpus = {{"NVIDIA H200", 150 * kGigabyte, 0, 9, 0}};
  m.processes = Answers("");
  m.nvcc = Answers("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n");
  m.builds.nvrtc_version = "13.0";
  v1::BuildReply built;
  built.set_cubin("ELF");
  built.set_seconds(0.035);
  m.builds.build = built;
  v1::BuildReply refused;
  refused.mutable_failure()->set_check(v1::CHECK_BUILD_SANDBOX);
  m.builds.theft = refused;
  m.ncu = Answers(
      "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025\nVersion 2025.3.1.0 (build 1)\n");
  m.ncu_metrics = Answers(
      "Device NVIDIA H200 (GH100)\n--------- ---------\nMetric Name     Metric Type   Metric Unit\n"
      "dram__bytes     Counter       byte     # of bytes accessed in DRAM\n"
      "sm__throughput  Throughput    %        SM throughput\n");
  m.metrics = {"dram__bytes.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "launch__grid_size"};
  m.driver_params = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n";
  m.sanitizer = Answers("NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1\n");
  m.pytorch = Answers("2.11.0+cu130 True\n");
  m.disks = {{"/tmp", "builds", 50 * kGigabyte}, {"/home/me", "recordings", 50 * kGigabyte}};
  return m;
}

v1::DoctorLine LineOf(const Machine& machine, const std::string& name) {
  const v1::DoctorReport report = Examine(machine);
  for (const v1::DoctorLine& line : report.lines()) {
    if (line.name() == name) return line;
  }
  ADD_FAILURE() << "no line " << name;
  return {};
}

testing::AssertionResult Says(const v1::DoctorLine& line, v1::DoctorState state, const std::string& seen,
                              const std::string& fix) {
  if (line.state() == state && line.seen().find(seen) != std::string::npos &&
      line.fix().find(fix) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << line.ShortDebugString();
}

TEST(Doctor, FindsNothingWrongWithAFineMachine) {
  const v1::DoctorReport report = Examine(FineMachine());
  EXPECT_TRUE(report.can_run());
  for (const v1::DoctorLine& line : report.lines()) {
    EXPECT_EQ(line.state(), v1::DOCTOR_STATE_OK) << line.ShortDebugString();
    EXPECT_TRUE(line.fix().empty()) << line.ShortDebugString();
    EXPECT_FALSE(line.seen().empty()) << line.name();
  }
  EXPECT_TRUE(Says(LineOf(FineMachine(), "GPU"), v1::DOCTOR_STATE_OK, "NVIDIA H200, 150 GB", ""));
  EXPECT_TRUE(Says(LineOf(FineMachine(), "ncu"), v1::DOCTOR_STATE_OK, "2025.3.1.0", ""));
  EXPECT_TRUE(Says(LineOf(FineMachine(), "toolkit"), v1::DOCTOR_STATE_OK, "nvcc 13.0", ""));
}

TEST(Doctor, EveryLineThatIsNotOkHasAFix) {
  const v1::DoctorReport report = Examine(Machine());
  EXPECT_FALSE(report.can_run());
  for (const v1::DoctorLine& line : report.lines()) {
    if (line.state() != v1::DOCTOR_STATE_OK) {
      EXPECT_FALSE(line.fix().empty()) << line.name();
    }
  }
}

TEST(Doctor, CanNotRunWithoutAGpu) {
  Machine m = FineMachine();
  m.driver = DriverSeen();
  m.driver.load_error = "libcuda.so.1: cannot open shared object file: No such file or directory";
  EXPECT_FALSE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "driver"), v1::DOCTOR_STATE_FAILED, "libcuda.so.1", "install NVIDIA's driver"));
  EXPECT_TRUE(Says(LineOf(m, "GPU"), v1::DOCTOR_STATE_FAILED, "none", "NVIDIA GPU"));
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "no GPU", "see GPU"));
}

TEST(Doctor, PassesOnWhyCudaDoesNotStart) {
  Machine m = FineMachine();
  m.driver.gpus.clear();
  m.driver.init_error = "cuInit answered error 802";
  EXPECT_TRUE(Says(LineOf(m, "driver"), v1::DOCTOR_STATE_FAILED, "error 802", "nvidia-smi"));
}

TEST(Doctor, NamesBothVersionsWhenTheDriverIsOlderThanTheToolkit) {
  Machine m = FineMachine();
  m.driver.cuda_version = 12040;
  EXPECT_FALSE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "driver"), v1::DOCTOR_STATE_FAILED, "CUDA 12.4, older than the toolkit's 13.0",
                   "upgrade the driver to one for CUDA 13.0"));
  m.driver.cuda_version = 13020;
  EXPECT_EQ(LineOf(m, "driver").state(), v1::DOCTOR_STATE_OK) << "a newer driver serves an older toolkit";
}

TEST(Doctor, RefusesAGpuThatLetsOnlyOneProcessIn) {
  Machine m = FineMachine();
  m.driver.gpus[0].compute_mode = 3;
  EXPECT_FALSE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "GPU"), v1::DOCTOR_STATE_FAILED, "one process", "--compute-mode=DEFAULT"));
}

TEST(Doctor, NeedsOneOfTheTwoCompilers) {
  Machine m = FineMachine();
  m.nvcc = Asked();
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "toolkit"), v1::DOCTOR_STATE_WARNING, "no nvcc", "compiler = \"nvcc\""));
  m.builds.build = absl::UnavailableError("libnvrtc.so is not in /usr/local/cuda");
  EXPECT_FALSE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "toolkit"), v1::DOCTOR_STATE_FAILED, "no nvcc", "install the CUDA toolkit"));
  EXPECT_TRUE(Says(LineOf(m, "NVRTC"), v1::DOCTOR_STATE_FAILED, "libnvrtc.so is not in", "LD_LIBRARY_PATH"));
  m.nvcc = FineMachine().nvcc;
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_EQ(LineOf(m, "NVRTC").state(), v1::DOCTOR_STATE_WARNING);
}

TEST(Doctor, ReportsABuildSandboxThatLetsThingsThrough) {
  Machine m = FineMachine();
  m.builds.theft = m.builds.build;
  EXPECT_TRUE(Says(LineOf(m, "build sandbox"), v1::DOCTOR_STATE_FAILED, "was not refused", "report"));
  m.builds.run_sandbox = absl::FailedPreconditionError("mount /proc: Operation not permitted");
  EXPECT_TRUE(Says(LineOf(m, "build sandbox"), v1::DOCTOR_STATE_WARNING, "only for builds", "systempaths"));
  m.builds.sandbox = absl::FailedPreconditionError("user namespaces are not allowed here");
  EXPECT_TRUE(Says(LineOf(m, "build sandbox"), v1::DOCTOR_STATE_WARNING, "user namespaces", "sysctl"));
}

TEST(Doctor, TellsHowToOpenTheCounters) {
  Machine m = FineMachine();
  m.driver_params = "RmProfilingAdminOnly: 1\n";
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "RmProfilingAdminOnly is 1",
                   "NVreg_RestrictProfilingToAdminUsers=0"));
  m.privileged = true;
  EXPECT_EQ(LineOf(m, "counters").state(), v1::DOCTOR_STATE_OK);
}

TEST(Doctor, BelievesARealProfileMoreThanTheParametersFile) {
  Machine m = FineMachine();
  m.counters = Fails("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n");
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "ERR_NVGPUCTRPERM", "CAP_SYS_ADMIN"));
  m.counters = Fails("==ERROR== Profiling failed because a driver resource was unavailable. (like DCGM)\n");
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "DCGM", "dcgmi profile --pause"));
  m.counters = Fails("==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock\n");
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "lock file", "TMPDIR"));
  m.counters = Fails("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n");
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "LibraryNotLoaded", "timing only"));
  m.driver_params = "RmProfilingAdminOnly: 1\n";
  m.counters = Answers("");
  EXPECT_EQ(LineOf(m, "counters").state(), v1::DOCTOR_STATE_OK);
}

TEST(Doctor, GoesOnWithoutNcu) {
  Machine m = FineMachine();
  m.ncu = m.ncu_metrics = Asked();
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "ncu"), v1::DOCTOR_STATE_WARNING, "not there", "install Nsight Compute"));
  EXPECT_TRUE(Says(LineOf(m, "counters"), v1::DOCTOR_STATE_WARNING, "without ncu", "see ncu"));
}

TEST(Doctor, NamesMetricsThatThisNcuLacks) {
  Machine m = FineMachine();
  m.metrics.push_back("lts__throughput.avg.pct_of_peak_sustained_elapsed");
  EXPECT_TRUE(Says(LineOf(m, "metrics"), v1::DOCTOR_STATE_WARNING,
                   "lacks lts__throughput.avg.pct_of_peak_sustained_elapsed", "Nsight Compute"));
  EXPECT_EQ(LineOf(m, "metrics").seen().find("launch__grid_size"), std::string::npos);
  m.ncu_metrics = Fails("Skipping unsupported chip");
  m.ncu_metrics.out.clear();
  EXPECT_TRUE(Says(LineOf(m, "metrics"), v1::DOCTOR_STATE_WARNING, "Skipping unsupported chip", "by hand"));
}

TEST(Doctor, NamesOtherProcessesOnTheGpu) {
  Machine m = FineMachine();
  m.processes = Answers("4711, 1024 MiB\n4712, 2048 MiB\n");
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "GPU processes"), v1::DOCTOR_STATE_WARNING, "pid 4711 (1024 MiB), pid 4712 (2048 MiB)",
                   "stop them"));
}

TEST(Doctor, WarnsOfLittleDiskAndRefusesNone) {
  Machine m = FineMachine();
  m.disks = {{"/tmp", "builds", kGigabyte}};
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "disk"), v1::DOCTOR_STATE_WARNING, "1.0 GB free in /tmp", "2 GB"));
  m.disks[0].free_bytes = 1'000'000;
  EXPECT_FALSE(Examine(m).can_run());
}

TEST(Doctor, CallsPytorchOptional) {
  Machine m = FineMachine();
  m.pytorch = Fails("ModuleNotFoundError: No module named 'torch'");
  EXPECT_TRUE(Examine(m).can_run());
  EXPECT_TRUE(Says(LineOf(m, "PyTorch"), v1::DOCTOR_STATE_WARNING, "can't import torch", "optional"));
  m.pytorch = Answers("2.11.0 False\n");
  EXPECT_TRUE(Says(LineOf(m, "PyTorch"), v1::DOCTOR_STATE_WARNING, "2.11.0, which sees no GPU", "optional"));
}

TEST(Machine, IsLookedAtWhateverItLacks) {
  const Machine machine = LookAtMachine({.builds = ProbeBuilds, .counters = nullptr});
  EXPECT_EQ(machine.disks.size(), 2u);
  EXPECT_GT(machine.disks[0].free_bytes, 0);
  EXPECT_FALSE(machine.metrics.empty());
  EXPECT_FALSE(machine.counters.has_value());
  EXPECT_FALSE(machine.driver.load_error.empty() && machine.driver.cuda_version == 0);
  // Where NVRTC is, the builder and its sandbox work.
  if (!machine.builds.nvrtc_version.empty() && machine.builds.sandbox.ok()) {
    ASSERT_TRUE(machine.builds.build.ok()) << machine.builds.build.status();
    EXPECT_FALSE(machine.builds.build->cubin().empty()) << machine.builds.build->ShortDebugString();
    EXPECT_EQ(machine.builds.theft->failure().check(), v1::CHECK_BUILD_SANDBOX)
        << machine.builds.theft->ShortDebugString();
  }
}

}  // namespace
}  // namespace pawl
