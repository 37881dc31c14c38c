// pawl-worker: leases trials from an orchestrator and measures them on a GPU, or answers them from recordings.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/faults/fault_point.h"
#include "base/streams/standard_streams.h"
#include "profiles/profile_set.h"
#include "worker/host/machine.h"
#include "worker/lease/device_crew.h"
#include "worker/lease/lease_loop.h"
#include "worker/lease/worker_client.h"
#include "worker/lease/worker_name.h"
#include "worker/lease/worker_options.h"
#include "worker/process/process.h"
#include "worker/replay/recording.h"
#include "worker/replay/replay_device.h"
#include "worker/trial/cuda_trial_device.h"

namespace pawl {
namespace {

constexpr std::chrono::milliseconds kForcedEnd{1500};
constexpr int kAheadOnGpu = 2;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// Turns the first TERM or INT into draining and the second into an end within three seconds. A thread of its own waits
// for them, so that no other is ever interrupted.
class SignalWatch {
 public:
  // Before any other thread starts.
  SignalWatch() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { Watch(); });
  }
  ~SignalWatch() {
    done_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  void SetLoop(LeaseLoop* loop) {
    absl::MutexLock lock(&mutex_);
    loop_ = loop;
  }

 private:
  void Watch() {
    for (int seen = 1;; ++seen) {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (done_) return;
      {
        absl::MutexLock lock(&mutex_);  // the loop stays until this is done
        if (loop_ == nullptr) End(0);   // nothing is leased yet
        if (seen == 1) {
          spdlog::info("draining: the running trial is finished; a second signal ends it");
          loop_->Drain();
          continue;
        }
        spdlog::warn("ending at once");
        loop_->Stop();
      }
      const auto until = std::chrono::steady_clock::now() + kForcedEnd;
      while (!done_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!done_) End(1);
    }
  }

  [[noreturn]] static void End(int code) {
    KillChildren();
    _exit(code);
  }

  sigset_t signals_;
  std::atomic<bool> done_ = false;
  absl::Mutex mutex_;
  LeaseLoop* loop_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<TrialDevice>> OpenReplay(const WorkerOptions& options) {
  ReplayOptions replay;
  replay.speed = options.replay_speed;
  replay.recordings.assign(options.recordings.begin(), options.recordings.end());
  if (replay.recordings.empty()) {
    const std::filesystem::path shipped = FindRecordingsFolder();
    if (!shipped.empty()) replay.recordings.push_back(shipped);
  }
  absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open(replay);
  if (!device.ok()) return device.status();
  for (const std::string& line : (*device)->left_out()) spdlog::warn("not replayed: {}", line);
  return device;
}

absl::StatusOr<std::unique_ptr<TrialDevice>> OpenCuda(const WorkerOptions& options, int ahead) {
  static absl::StatusOr<ProfileSet> profiles =  // the device keeps its metrics
      options.profiles.empty() ? ProfileSet::Default() : ProfileSet::Load(options.profiles);
  if (!profiles.ok()) return profiles.status();
  CudaDevice::Options cuda;
  cuda.device = options.cuda;
  // Sources that fix their sizes are built for every size to validate, side by side.
  cuda.builders = std::max(1 + ahead, std::min(16, static_cast<int>(std::thread::hardware_concurrency())));
  cuda.libraries = options.libraries;
  cuda.allow_unsandboxed = options.allow_unsandboxed;
  cuda.warm_python = true;
  absl::StatusOr<std::unique_ptr<CudaTrialDevice>> device = CudaTrialDevice::Open(cuda, profiles->metrics);
  if (!device.ok()) return device.status();
  const v1::GpuInfo& gpu = (*device)->cuda().gpu();
  spdlog::info("cuda:{}: {}, driver {}; builds with {}; runs {}", options.cuda, gpu.name(), gpu.driver_version(),
               (*device)->cuda().builders().description(), (*device)->cuda().sandboxing().description());
  for (const std::string& line : (*device)->warnings()) spdlog::warn("{}", line);
  return device;
}

absl::StatusOr<std::unique_ptr<TrialDevice>> OpenDevice(const WorkerOptions& options, int ahead) {
  if (options.device == DeviceChoice::kReplay) return OpenReplay(options);
  if (options.device == DeviceChoice::kCuda) return OpenCuda(options, ahead);
  if (HasGpu()) {
    absl::StatusOr<std::unique_ptr<TrialDevice>> device = OpenCuda(options, ahead);
    // A GPU that is there and can't be used is an error to fix; replaying instead would hide it.
    if (device.ok() || !absl::StrContains(device.status().message(), "CUDA_ERROR_NO_DEVICE")) return device;
  }
  spdlog::info("there is no NVIDIA GPU here: replaying recordings instead");
  return OpenReplay(options);
}

std::string Hexadecimal(int words) {
  std::random_device random;
  std::string text;
  for (int i = 0; i < words; ++i) absl::StrAppendFormat(&text, "%08x", random());
  return text;
}

std::string NameOf(const WorkerOptions& options, const v1::Device& device) {
  if (!options.name.empty()) return options.name;
  const bool replay = device.kind() == v1::DEVICE_KIND_REPLAY;
  return DefaultWorkerName(replay ? "replay" : absl::StrCat("cuda", options.cuda));
}

void SetUpLog(const WorkerOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("pawl-worker"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(options.log_level));
}

int Main(const WorkerOptions& options) {
  const absl::StatusOr<std::string> fault = ArmFaultPoint();
  if (!fault.ok()) {
    spdlog::error("{}", Text(fault.status()));
    return 2;
  }
  if (!fault->empty()) spdlog::warn("FOR TESTS ONLY: PAWL_FAULT makes this process kill itself at {}", *fault);
  SignalWatch signals;
  const absl::StatusOr<std::unique_ptr<WorkerClient>> client =
      ConnectToOrchestrator(options.orchestrator, options.credentials);
  if (!client.ok()) {
    spdlog::error("{}", Text(client.status()));
    return 2;
  }
  absl::StatusOr<std::unique_ptr<TrialDevice>> device = OpenDevice(options, options.ahead.value_or(kAheadOnGpu));
  if (!device.ok()) {
    spdlog::error("{}", Text(device.status()));
    return 1;
  }
  const v1::Device& described = (*device)->device();
  const bool replay = described.kind() == v1::DEVICE_KIND_REPLAY;
  LeaseLoopOptions loop_options;
  loop_options.ahead = options.ahead.value_or(replay ? 0 : kAheadOnGpu);
  loop_options.session.orchestrator = options.orchestrator;
  loop_options.session.name = "workers/" + NameOf(options, described);
  loop_options.session.instance = Hexadecimal(4);
  loop_options.session.version = PAWL_VERSION;
  loop_options.limits = options.limits;
  // The last call may take 10 s after it.
  loop_options.drain_patience = std::max(options.grace - Backoff::Duration(15), options.grace / 2);
  LeaseLoop loop(**device, **client, loop_options);
  signals.SetLoop(&loop);
  const absl::Status status = loop.Run();
  signals.SetLoop(nullptr);
  if (!status.ok()) {
    spdlog::error("{}", Text(status));
    return 1;
  }
  spdlog::info("drained");
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  pawl::PrepareStreams();
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // its errors come back as statuses, which are logged
  int exit_code = 0;
  const std::optional<pawl::WorkerOptions> options = pawl::ReadWorkerOptions(argc, argv, PAWL_VERSION, &exit_code);
  if (!options) return exit_code;
  pawl::SetUpLog(*options);
  return options->devices.empty() ? pawl::Main(*options)
                                  : pawl::RunDeviceCrew(*options, std::vector<std::string>(argv, argv + argc));
}
