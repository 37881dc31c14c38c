#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/channel/channel.h"
#include "worker/lease/work_limits.h"

namespace pawl {

enum class DeviceChoice { kAuto, kCuda, kReplay };

struct WorkerOptions {
  std::string orchestrator;
  Credentials credentials;
  DeviceChoice device = DeviceChoice::kAuto;
  int cuda = 0;                      // number of the GPU
  std::vector<std::string> devices;  // as written, where there are several: each gets a worker of its own
  std::vector<std::string> recordings;
  double replay_speed = 0;
  std::string name;                              // without workers/
  std::optional<int> ahead;                      // absent: as the device likes it
  std::string profiles;                          // folder with metrics instead of those that were built in; empty: none
  std::map<std::string, std::string> libraries;  // header libraries that builds may use: names to folders
  bool allow_unsandboxed = false;
  WorkLimits limits;
  std::chrono::duration<double> grace{30};  // from the signal to the end
  std::string log_level;
};

// Reads flags, the environment (PAWL_ and the flag's name) and the file of --config; the first that says something
// wins. On a mistake, and for --help and --version, says what is to be said and answers nothing, with the program's
// exit code.
std::optional<WorkerOptions> ReadWorkerOptions(int argc, const char* const* argv, const std::string& version,
                                               int* exit_code);

}  // namespace pawl
