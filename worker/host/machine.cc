#include "worker/host/machine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "profiles/metrics.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

constexpr absl::Duration kQuick = absl::Seconds(20);
constexpr absl::Duration kSlow = absl::Seconds(60);

Asked Ask(std::vector<std::string> argv, absl::Duration timeout) {
  if (argv[0].empty()) return Asked();
  ProcessOptions options;
  options.argv = std::move(argv);
  options.env = {{"LC_ALL", "C"}};
  options.timeout = timeout;
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  Asked asked;
  if (!result.ok()) {
    asked.err = std::string(result.status().message());
    return asked;
  }
  asked.found = true;
  asked.ok = result->ok();
  asked.timed_out = result->timed_out;
  asked.out = result->out;
  asked.err = result->err;
  return asked;
}

DriverSeen AskDriver() {
  DriverSeen seen;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    const char* error = dlerror();
    seen.load_error = error != nullptr ? error : "unknown";
    return seen;
  }
  const auto call = [&](const char* name, auto... arguments) {
    auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name));
    const int result = function != nullptr ? function(arguments...) : -1;
    if (result != 0 && seen.init_error.empty()) seen.init_error = absl::StrCat(name, " answered error ", result);
    return result == 0;
  };
  call("cuDriverGetVersion", &seen.cuda_version);
  int count = 0;
  if (!call("cuInit", 0u) || !call("cuDeviceGetCount", &count)) return seen;
  for (int i = 0; i < count; ++i) {
    GpuSeen gpu;
    char name[256] = "";
    size_t bytes = 0;
    int device = 0;
    call("cuDeviceGet", &device, i);
    call("cuDeviceGetName", name, static_cast<int>(sizeof name), device);
    call("cuDeviceTotalMem_v2", &bytes, device);
    call("cuDeviceGetAttribute", &gpu.compute_mode, 20, device);
    call("cuDeviceGetAttribute", &gpu.compute_major, 75, device);
    call("cuDeviceGetAttribute", &gpu.compute_minor, 76, device);
    gpu.name = name;
    gpu.memory_bytes = static_cast<int64_t>(bytes);
    seen.gpus.push_back(gpu);
  }
  return seen;
}

// A sick GPU can keep a driver call for ever and a thread can't be taken out of it: it is left behind.
DriverSeen AskDriverWithDeadline() {
  auto promise = std::make_shared<std::promise<DriverSeen>>();
  std::future<DriverSeen> answer = promise->get_future();
  std::thread([promise] { promise->set_value(AskDriver()); }).detach();
  if (answer.wait_for(absl::ToChronoSeconds(kQuick)) == std::future_status::ready) return answer.get();
  DriverSeen seen;
  seen.init_error = absl::StrCat("the driver did not answer within ", absl::FormatDuration(kQuick));
  return seen;
}

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool HasSysAdmin() {
  if (geteuid() == 0) return true;
  for (absl::string_view line : absl::StrSplit(ReadFile("/proc/self/status"), '\n')) {
    constexpr absl::string_view kEffective = "CapEff:";
    uint64_t mask = 0;
    if (line.substr(0, kEffective.size()) == kEffective &&
        absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line.substr(kEffective.size())), &mask)) {
      return (mask >> 21) & 1;  // CAP_SYS_ADMIN
    }
  }
  return false;
}

void LookAtDisks(Machine* machine) {
  const auto look = [&](const std::filesystem::path& folder, const char* use) {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    const int64_t free = error ? 0 : static_cast<int64_t>(space.available);
    machine->disks.push_back({folder.string(), use, free});
  };
  const char* tmp = std::getenv("TMPDIR");
  look(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp", "builds and profiles");
  std::error_code error;
  look(std::filesystem::current_path(error), "recordings");
}

}  // namespace

bool HasGpu() {
  std::error_code error;
  return std::filesystem::exists("/dev/nvidiactl", error) || std::filesystem::exists("/dev/dxg", error);
}

std::string FirstGpuName() {
  std::error_code error;
  std::set<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    folders.insert(entry.path());
  }
  for (const std::filesystem::path& folder : folders) {
    for (absl::string_view line : absl::StrSplit(ReadFile((folder / "information").c_str()), '\n')) {
      if (absl::ConsumePrefix(&line, "Model:")) return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

int CountGpus() {
  if (const char* visible = getenv("CUDA_VISIBLE_DEVICES")) {
    const std::vector<std::string> words = absl::StrSplit(visible, ',', absl::SkipWhitespace());
    return static_cast<int>(words.size());
  }
  std::error_code error;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    int number = 0;
    if (absl::StartsWith(name, "nvidia") && absl::SimpleAtoi(name.substr(sizeof("nvidia") - 1), &number)) ++count;
  }
  return count > 0 ? count : std::filesystem::exists("/dev/dxg", error) ? 1 : 0;
}

Machine LookAtMachine(const MachineProbes& probes) {
  Machine machine;
  machine.metrics = Metrics::Default().NcuNames();
  const auto start = [](auto&& look) { return std::async(std::launch::async, std::forward<decltype(look)>(look)); };

  auto driver = start(AskDriverWithDeadline);
  auto pytorch = start([] {
    return Ask({"python3", "-c", "import torch; print(torch.__version__, torch.cuda.is_available())"}, kSlow);
  });
  const Toolkit toolkit = FindToolkit();
  auto ncu = start([&] { return Ask({toolkit.ncu, "--version"}, kQuick); });
  auto metrics = start([&] { return Ask({toolkit.ncu, "--query-metrics"}, kSlow); });
  auto nvcc = start([&] { return Ask({toolkit.nvcc, "--version"}, kQuick); });
  auto sanitizer = start([&] { return Ask({toolkit.compute_sanitizer, "--version"}, kQuick); });
  auto processes = start([] {
    return Ask({"nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"}, kQuick);
  });

  LookAtDisks(&machine);
  machine.driver_params = ReadFile("/proc/driver/nvidia/params");
  machine.privileged = HasSysAdmin();
  machine.driver = driver.get();
  if (probes.builds) machine.builds = probes.builds(machine.driver);
  machine.processes = processes.get();
  machine.nvcc = nvcc.get();
  machine.ncu = ncu.get();
  machine.ncu_metrics = metrics.get();
  // Only one ncu at a time gets at the counters.
  if (probes.counters && machine.ncu.ok && !machine.driver.gpus.empty()) machine.counters = probes.counters();
  machine.sanitizer = sanitizer.get();
  machine.pytorch = pytorch.get();
  return machine;
}

}  // namespace pawl
