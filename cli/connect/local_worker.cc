#include "cli/connect/local_worker.h"

#include <ctype.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/names/resource_name.h"
#include "cli/connect/flags.h"

namespace pawl {
namespace {

constexpr uintmax_t kLongLog = 8 << 20;

bool IsDevice(const std::string& text) {
  return text == "replay" || (text.size() > 5 && text.rfind("cuda:", 0) == 0 &&
                              text.find_first_not_of("0123456789", 5) == std::string::npos);
}

std::string CheckDevice(const std::string& text) {
  if (text == "auto" || IsDevice(text)) return "";
  return absl::StrCat("\"", text, "\" is not a device: expected auto, cuda:N or replay");
}

std::string CheckDevices(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  if (text == "auto" || text == "all" || std::all_of(words.begin(), words.end(), IsDevice)) return "";
  return absl::StrCat("\"", text, "\" is not a device: expected auto, all, cuda:N, replay or a list of the last two");
}

}  // namespace

void AddDeviceFlags(CLI::App& command, std::string* device, std::string* recordings, bool* allow_unsandboxed,
                    bool several) {
  command
      .add_option("--device", *device,
                  several ? "Where to measure: auto (a GPU if there is one, otherwise replay), all GPUs, cuda:N, "
                            "replay, or a list (cuda:0,cuda:1)"
                          : "Where to measure: auto (a GPU if there is one, otherwise replay), cuda:N or replay")
      ->type_name(several ? "{auto,all,cuda:0,replay}" : "{auto,cuda:0,replay}")
      ->check(CLI::Validator(several ? CheckDevices : CheckDevice, ""));
  command
      .add_option("--recordings", *recordings,
                  "Recordings to replay, a file or a folder (default: those that ship with Pawl)")
      ->type_name("FILE")
      ->check(CLI::ExistingPath);
  command.add_flag("--allow-unsandboxed", *allow_unsandboxed,
                   "Build and run candidates even if no sandbox is available");
}

void AddWorkerFlags(CLI::App& command, WorkerFlags* flags) {
  AddDeviceFlags(command, &flags->device, &flags->recordings, &flags->allow_unsandboxed, /*several=*/true);
  command
      .add_option("--replay-speed", flags->replay_speed,
                  "Replay in the recorded time of each stage, this many times as fast (default: without waiting)")
      ->check(AboveZero());
}

std::string LocalWorkerName() {
  static int count = 0;
  char host[64] = "localhost";
  gethostname(host, sizeof(host) - 1);
  std::string name = "workers/";
  for (const char* c = host; *c != '\0' && *c != '.'; ++c) name += isalnum(static_cast<unsigned char>(*c)) ? *c : '-';
  return absl::StrCat(name, "-", getpid(), "-", count++);
}

absl::StatusOr<std::unique_ptr<Daemon>> StartLocalWorker(const WorkerFlags& flags, const std::string& orchestrator,
                                                         const Credentials& credentials, const std::string& name,
                                                         const std::filesystem::path& log) {
  DaemonOptions options;
  options.program = "pawl-worker";
  options.log = log;
  options.arguments = {"--orchestrator", orchestrator, "--name", ShortName(name), "--device", flags.device};
  if (flags.replay_speed > 0) {
    options.arguments.insert(options.arguments.end(), {"--replay-speed", absl::StrCat(flags.replay_speed)});
  }
  if (!flags.recordings.empty()) {
    options.arguments.insert(options.arguments.end(), {"--recordings", flags.recordings});
  }
  if (!flags.profiles.empty()) options.arguments.insert(options.arguments.end(), {"--profiles", flags.profiles});
  const std::vector<std::string> files = FlagsOf(credentials);
  options.arguments.insert(options.arguments.end(), files.begin(), files.end());
  if (flags.allow_unsandboxed) options.arguments.push_back("--allow-unsandboxed");
  return Daemon::Start(options);
}

std::filesystem::path DaemonLog(const Settings& settings, const std::string& daemon) {
  const std::filesystem::path folder = settings.database.parent_path();
  std::error_code error;  // where it can't be made, opening the log says so
  std::filesystem::create_directories(folder, error);
  std::filesystem::path log = folder / (daemon + ".log");
  if (std::filesystem::file_size(log, error) > kLongLog && !error) {
    std::filesystem::rename(log, log.string() + ".1", error);
  }
  return log;
}

}  // namespace pawl
