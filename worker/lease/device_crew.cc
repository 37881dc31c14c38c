#include "worker/lease/device_crew.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/lease/worker_name.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 200'000'000};

bool IsFlag(const std::string& word, const std::string& flag) {
  return word == flag || absl::StartsWith(word, absl::StrCat(flag, "="));
}

}  // namespace

std::vector<std::string> CommandOf(const std::vector<std::string>& words, const std::string& device,
                                   const std::string& name) {
  std::vector<std::string> command;
  for (size_t i = 0; i < words.size(); ++i) {
    if (IsFlag(words[i], "--device") || IsFlag(words[i], "--name")) {
      if (!absl::StrContains(words[i], '=')) ++i;  // its value
      continue;
    }
    command.push_back(words[i]);
  }
  command.insert(command.end(), {"--device", device, "--name", name});
  return command;
}

int RunDeviceCrew(const WorkerOptions& options, const std::vector<std::string>& words) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::map<pid_t, std::string> running;  // device by process
  std::map<std::string, int> seen;
  int code = 0;
  for (const std::string& device : options.devices) {
    std::string label = absl::StrReplaceAll(device, {{":", ""}});
    if (const int count = ++seen[device]; count > 1) absl::StrAppend(&label, "-", count);
    SpawnOptions spawn;
    spawn.argv = CommandOf(words, device,
                           options.name.empty() ? DefaultWorkerName(label) : absl::StrCat(options.name, "-", label));
    spawn.argv[0] = std::filesystem::read_symlink("/proc/self/exe");
    spawn.fds = {{0, 0}, {1, 1}, {2, 2}};
    const absl::StatusOr<pid_t> pid = Spawn(spawn);
    if (!pid.ok()) {
      spdlog::error("no worker for {}: {}", device, std::string(pid.status().message()));
      code = 1;
      continue;
    }
    running[*pid] = device;
  }
  while (!running.empty()) {
    if (const int signal = sigtimedwait(&signals, nullptr, &kLook); signal > 0) {
      for (const auto& [pid, device] : running) kill(pid, signal);
    }
    for (auto it = running.begin(); it != running.end();) {
      if (!HasEnded(it->first)) {
        ++it;
        continue;
      }
      const ProcessEnd end = Reap(it->first);
      const int ended = end.signal != 0 ? 128 + end.signal : end.exit_code;
      if (ended != 0) spdlog::error("the worker of {} {}; {} still run", it->second, EndText(end), running.size() - 1);
      if (code == 0) code = ended;
      it = running.erase(it);
    }
  }
  return code;
}

}  // namespace pawl
