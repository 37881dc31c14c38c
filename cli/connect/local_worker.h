#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/connect/daemon.h"
#include "cli/connect/settings.h"

namespace CLI {
class App;
}

namespace pawl {

// What the worker of a command measures on.
struct WorkerFlags {
  std::string profiles;  // folder with metrics instead of those that were built in; no flag of its own
  std::string device = "auto";
  double replay_speed = 0;  // 0: as fast as it goes
  std::string recordings;   // empty: those that ship with Pawl
  bool allow_unsandboxed = false;
};
void AddWorkerFlags(CLI::App& command, WorkerFlags* flags);
// Those of them that do not depend on how it is started: --device, --recordings, --allow-unsandboxed.
// `several`: a list of devices, or all, is taken too.
void AddDeviceFlags(CLI::App& command, std::string* device, std::string* recordings, bool* allow_unsandboxed,
                    bool several = false);

// workers/HOST-PID-N: nobody else's.
std::string LocalWorkerName();

// A pawl-worker for the length of a command.
absl::StatusOr<std::unique_ptr<Daemon>> StartLocalWorker(const WorkerFlags& flags, const std::string& orchestrator,
                                                         const Credentials& credentials, const std::string& name,
                                                         const std::filesystem::path& log);

// orchestrator.log and worker.log beside the database: what the daemons that a command starts say. A long one is put
// aside first.
std::filesystem::path DaemonLog(const Settings& settings, const std::string& daemon);

}  // namespace pawl
