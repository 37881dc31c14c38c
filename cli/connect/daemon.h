#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace pawl {

struct DaemonOptions {
  std::string program;  // one of Pawl's own
  std::vector<std::string> arguments;
  std::filesystem::path log;                    // what it writes to standard error is added there
  std::map<std::string, std::string> env = {};  // added to the command's own
  bool announces = false;  // its standard output is read by FirstLine; otherwise that goes to the log, too
};

// A pawl-orchestrator or pawl-worker for the length of a command. It has a process group of its own (Ctrl-C is for the
// command to deal with), and the kernel kills it should the thread that started it die. For one thread.
class Daemon {
 public:
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options);
  ~Daemon();  // Stop(0.5 s)

  // The first line of its standard output. An error when it ended first (with what it said) or took too long.
  absl::StatusOr<std::string> FirstLine(absl::Duration wait);

  bool alive();
  // TERM, which lets it finish what it is at; after the grace TERM again, which does not; at last KILL for its whole
  // group. Waits for its end.
  void Stop(absl::Duration grace);
  // "pawl-worker exited with code 1:" and the last error that it logged, or its last lines.
  std::string Obituary();
  pid_t pid() const { return pid_; }
  // Nothing before Stop, or before FirstLine or Obituary found that it had ended.
  const std::optional<ProcessEnd>& end() const { return end_; }

 private:
  Daemon(DaemonOptions options, pid_t pid, Fd out, off_t log_start)
      : options_(std::move(options)), pid_(pid), out_(std::move(out)), log_start_(log_start) {}
  bool WaitForEnd(absl::Duration wait);

  const DaemonOptions options_;
  const pid_t pid_;
  Fd out_;
  const off_t log_start_;  // what stands before it in the log is not this daemon's
  std::optional<ProcessEnd> end_;
};

}  // namespace pawl
