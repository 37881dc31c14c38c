#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "profiles/ncu/ncu_csv.h"
#include "worker/host/machine.h"

namespace pawl {
namespace {

constexpr char kCounterFix[] =
    "put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and reboot, "
    "or "
    "run with CAP_SYS_ADMIN (in a container: --cap-add SYS_ADMIN); until then campaigns use timing only";
constexpr double kGigabyte = 1e9;

using Line = v1::DoctorLine;

Line Ok(const char* name, std::string seen) {
  Line line;
  line.set_name(name);
  line.set_state(v1::DOCTOR_STATE_OK);
  line.set_seen(std::move(seen));
  return line;
}

Line Bad(v1::DoctorState state, const char* name, std::string seen, std::string fix) {
  Line line = Ok(name, std::move(seen));
  line.set_state(state);
  line.set_fix(std::move(fix));
  return line;
}

Line Warning(const char* name, std::string seen, std::string fix) {
  return Bad(v1::DOCTOR_STATE_WARNING, name, std::move(seen), std::move(fix));
}

Line Failed(const char* name, std::string seen, std::string fix) {
  return Bad(v1::DOCTOR_STATE_FAILED, name, std::move(seen), std::move(fix));
}

// The first line that says something.
std::string FirstLine(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) return std::string(line);
  }
  return "no message";
}

// What follows `mark` up to the next comma, space or line end; empty when it is not there.
std::string WordAfter(absl::string_view text, absl::string_view mark) {
  const size_t at = text.find(mark);
  if (at == absl::string_view::npos) return "";
  text.remove_prefix(at + mark.size());
  return std::string(text.substr(0, text.find_first_of(", \r\n")));
}

std::string Complaint(const Asked& asked) {
  if (asked.timed_out) return "it did not answer in time";
  return FirstLine(absl::StrCat(asked.err, "\n", asked.out));
}

std::string CudaVersion(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

bool NvrtcWorks(const Machine& m) { return m.builds.build.ok() && !m.builds.build->cubin().empty(); }

std::string NvccVersion(const Machine& m) { return WordAfter(m.nvcc.out, "release "); }

// NVRTC's version, or else nvcc's: what compiles is what the driver must be able to load.
std::string ToolkitVersion(const Machine& m) {
  return m.builds.nvrtc_version.empty() ? NvccVersion(m) : m.builds.nvrtc_version;
}

Line ExamineDriver(const Machine& m) {
  const DriverSeen& driver = m.driver;
  if (!driver.load_error.empty()) {
    return Failed(
        "driver", absl::StrCat("libcuda.so.1 can't be loaded: ", driver.load_error),
        "install NVIDIA's driver (on Debian: apt-get install nvidia-driver); in a container start it with --gpus all");
  }
  if (!driver.init_error.empty()) {
    return Failed("driver", absl::StrCat("CUDA can't start: ", driver.init_error),
                  "run nvidia-smi: if that fails too, reload the driver (reboot) or reinstall it; in a container check "
                  "--gpus all");
  }
  const std::string toolkit = ToolkitVersion(m);
  int toolkit_major = 0;
  if (absl::SimpleAtoi(toolkit.substr(0, toolkit.find('.')), &toolkit_major) &&
      driver.cuda_version / 1000 < toolkit_major) {
    return Failed(
        "driver",
        absl::StrCat("it is for CUDA ", CudaVersion(driver.cuda_version), ", older than the toolkit's ", toolkit),
        absl::StrCat("upgrade the driver to one for CUDA ", toolkit, ", or install a CUDA ", driver.cuda_version / 1000,
                     " toolkit beside it"));
  }
  return Ok("driver", absl::StrCat("for CUDA ", CudaVersion(driver.cuda_version)));
}

Line ExamineGpu(const Machine& m) {
  if (m.driver.gpus.empty()) {
    return Failed("GPU", "none", "run this on a machine with an NVIDIA GPU; CUDA_VISIBLE_DEVICES must not hide it");
  }
  std::vector<std::string> texts;
  for (const GpuSeen& gpu : m.driver.gpus) {
    texts.push_back(absl::StrFormat("%s, %.0f GB, compute capability %d.%d", gpu.name, gpu.memory_bytes / kGigabyte,
                                    gpu.compute_major, gpu.compute_minor));
    if (gpu.compute_mode != 0) {
      return Failed("GPU",
                    absl::StrCat(texts.back(), gpu.compute_mode == 2 ? ": compute mode is prohibited"
                                                                     : ": compute mode lets only one process in"),
                    "nvidia-smi --compute-mode=DEFAULT (candidate and reference are two processes)");
    }
  }
  return Ok("GPU", absl::StrJoin(texts, "; "));
}

Line ExamineToolkit(const Machine& m) {
  if (m.nvcc.ok) return Ok("toolkit", absl::StrCat("nvcc ", NvccVersion(m)));
  const std::string seen = m.nvcc.found ? absl::StrCat("nvcc fails: ", Complaint(m.nvcc)) : "no nvcc";
  if (NvrtcWorks(m)) {
    return Warning("toolkit", seen,
                   "only bundles with compiler = \"nvcc\" need it: install the CUDA toolkit, or put nvcc on the PATH");
  }
  return Failed("toolkit", seen, "install the CUDA toolkit: a campaign needs NVRTC or nvcc");
}

Line ExamineNvrtc(const Machine& m) {
  const std::string version = m.builds.nvrtc_version.empty() ? "NVRTC" : absl::StrCat("NVRTC ", m.builds.nvrtc_version);
  if (NvrtcWorks(m))
    return Ok("NVRTC", absl::StrFormat("%s builds a kernel in %.0f ms", version, 1e3 * m.builds.build->seconds()));
  std::string seen;
  if (!m.builds.build.ok()) {
    seen = std::string(m.builds.build.status().message());
  } else if (!m.builds.build->host_error().empty()) {
    seen = m.builds.build->host_error();
  } else {
    seen = absl::StrCat("a plain kernel does not build: ", FirstLine(m.builds.build->failure().message()));
  }
  const std::string fix =
      "install the CUDA toolkit or its package cuda-nvrtc, or put the folder of libnvrtc.so on LD_LIBRARY_PATH";
  return m.nvcc.ok ? Warning("NVRTC", seen, fix + "; bundles with compiler = \"nvcc\" do not need it")
                   : Failed("NVRTC", seen, fix);
}

Line ExamineSandbox(const Machine& m) {
  if (!m.builds.sandbox.ok()) {
    return Warning(
        "build sandbox", std::string(m.builds.sandbox.message()),
        "allow user namespaces (sysctl -w kernel.unprivileged_userns_clone=1, on Ubuntu also "
        "kernel.apparmor_restrict_unprivileged_userns=0), or run as root; --allow-unsandboxed runs without a sandbox");
  }
  if (!m.builds.run_sandbox.ok()) {
    return Warning("build sandbox", absl::StrCat("only for builds, not for runs: ", m.builds.run_sandbox.message()),
                   "in a container: --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or "
                   "--privileged; --allow-unsandboxed runs without a sandbox");
  }
  if (!NvrtcWorks(m)) return Warning("build sandbox", "not tried: nothing builds", "see NVRTC");
  if (m.builds.theft.ok() && m.builds.theft->cubin().empty() &&
      m.builds.theft->failure().check() == v1::CHECK_BUILD_SANDBOX) {
    return Ok("build sandbox", "a kernel that includes /etc/passwd is refused");
  }
  std::string seen = "a kernel that includes /etc/passwd was not refused for that";
  if (!m.builds.theft.ok()) seen = std::string(m.builds.theft.status().message());
  return Failed("build sandbox", seen, "this is a defect: report it with what pawl doctor --json prints");
}

Line ExamineNcu(const Machine& m) {
  if (m.ncu.ok) return Ok("ncu", absl::StrCat("Nsight Compute ", WordAfter(m.ncu.out, "Version ")));
  return Warning(
      "ncu", m.ncu.found ? absl::StrCat("it fails: ", Complaint(m.ncu)) : "not there",
      "install Nsight Compute (package nsight-compute of NVIDIA's repository), or put ncu on the PATH; until then "
      "campaigns use timing only");
}

Line ExamineCounters(const Machine& m) {
  if (!m.ncu.ok) return Warning("counters", "not available without ncu", "see ncu");
  if (m.driver.gpus.empty()) return Warning("counters", "not tried: no GPU", "see GPU");
  if (m.counters.has_value()) {
    if (m.counters->ok) return Ok("counters", "ncu reads them");
    const std::string all = absl::StrCat(m.counters->err, "\n", m.counters->out);
    if (absl::StrContains(all, "ERR_NVGPUCTRPERM"))
      return Warning("counters", "ERR_NVGPUCTRPERM: forbidden to this user", kCounterFix);
    if (absl::StrContains(all, "driver resource was unavailable")) {
      return Warning("counters", "another tool holds them (DCGM, as a rule)",
                     "dcgmi profile --pause, or stop the exporter while profiling");
    }
    if (absl::StrContains(all, "lock file")) {
      return Warning("counters", "ncu can't open its lock file",
                     "set TMPDIR to a folder of your own; only one ncu runs at a time");
    }
    return Warning("counters", absl::StrCat("ncu fails: ", Complaint(*m.counters)),
                   "run ncu by hand over a small program; until it works campaigns use timing only");
  }
  if (!absl::StrContains(m.driver_params, "RmProfilingAdminOnly: 1")) return Ok("counters", "open to every user");
  if (m.privileged) return Ok("counters", "open to administrators, and this is one");
  return Warning("counters", "RmProfilingAdminOnly is 1 and this user is not an administrator", kCounterFix);
}

Line ExamineMetrics(const Machine& m) {
  if (!m.ncu.ok) return Warning("metrics", "not available without ncu", "see ncu");
  const absl::StatusOr<std::vector<std::string>> missing = MissingNcuMetrics(m.metrics, m.ncu_metrics.out);
  if (!missing.ok()) {
    return Warning("metrics", absl::StrCat("ncu --query-metrics names none: ", Complaint(m.ncu_metrics)),
                   "run it by hand; until it works it is not known which counters are there");
  }
  if (missing->empty()) return Ok("metrics", absl::StrCat("ncu knows all ", m.metrics.size(), " that Pawl asks for"));
  return Warning("metrics", absl::StrCat("this ncu lacks ", absl::StrJoin(*missing, ", ")),
                 "use an Nsight Compute as new as the driver; rules that read these metrics will not fire");
}

Line ExamineSanitizer(const Machine& m) {
  if (m.sanitizer.ok) return Ok("compute-sanitizer", WordAfter(m.sanitizer.out, "Version "));
  return Warning(
      "compute-sanitizer", m.sanitizer.found ? absl::StrCat("it fails: ", Complaint(m.sanitizer)) : "not there",
      "install it (package cuda-sanitizer of NVIDIA's repository), or put it on the PATH; without it races and "
      "reads of uninitialised memory may go unseen");
}

Line ExaminePytorch(const Machine& m) {
  if (!m.pytorch.ok) {
    return Warning("PyTorch", m.pytorch.timed_out ? "import torch did not end in time" : "python3 can't import torch",
                   "optional: pip install torch, so that bundles' baselines can be timed");
  }
  const std::string version = FirstLine(m.pytorch.out);
  if (absl::EndsWith(version, "False")) {
    return Warning("PyTorch", absl::StrCat(version.substr(0, version.find(' ')), ", which sees no GPU"),
                   "optional: install a PyTorch built for this driver's CUDA");
  }
  return Ok("PyTorch", version.substr(0, version.find(' ')));
}

Line ExamineDisk(const DiskSeen& disk) {
  const std::string seen =
      absl::StrFormat("%.1f GB free in %s (%s)", disk.free_bytes / kGigabyte, disk.folder, disk.use);
  const std::string fix = "free at least 2 GB there, or choose another place (TMPDIR, or start pawl elsewhere)";
  if (disk.free_bytes < 0.2 * kGigabyte) return Failed("disk", seen, fix);
  return disk.free_bytes < 2 * kGigabyte ? Warning("disk", seen, fix) : Ok("disk", seen);
}

Line ExamineProcesses(const Machine& m) {
  if (!m.processes.ok) {
    return Warning("GPU processes", m.processes.found ? Complaint(m.processes) : "no nvidia-smi to ask",
                   "make sure by hand that nothing else runs on the GPU while times are taken");
  }
  std::vector<std::string> others;
  for (absl::string_view line : absl::StrSplit(m.processes.out, '\n')) {
    const std::pair<absl::string_view, absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(',', 1));
    int64_t pid = 0;
    if (!absl::SimpleAtoi(fields.first, &pid)) continue;
    others.push_back(absl::StrCat("pid ", pid, " (", absl::StripAsciiWhitespace(fields.second), ")"));
  }
  if (others.empty()) return Ok("GPU processes", "none");
  return Warning("GPU processes", absl::StrJoin(others, ", "), "stop them, or wait: they disturb the measured times");
}

}  // namespace

v1::DoctorReport Examine(const Machine& machine) {
  v1::DoctorReport report;
  for (const auto examine : {ExamineDriver, ExamineGpu, ExamineToolkit, ExamineNvrtc, ExamineSandbox, ExamineNcu,
                             ExamineCounters, ExamineMetrics, ExamineSanitizer, ExaminePytorch, ExamineProcesses}) {
    *report.add_lines() = examine(machine);
  }
  for (const DiskSeen& disk : machine.disks) *report.add_lines() = ExamineDisk(disk);
  report.set_can_run(true);
  for (const Line& line : report.lines()) {
    if (line.state() == v1::DOCTOR_STATE_FAILED) report.set_can_run(false);
  }
  return report;
}

}  // namespace pawl
