#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/builder.pb.h"
#include "worker/host/toolkit.h"
#include "worker/process/child_process.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

struct BuilderOptions {
  int processes = 1;
  // Where the machine allows no sandbox: go on with a scan of the source instead, which is a weaker guard.
  bool allow_unsandboxed = false;
  bool skip_sandbox = false;  // with allow_unsandboxed: do not even try (for tests of the weaker guard)
  Toolkit toolkit = FindToolkit();
  std::string program;  // pawl-builder; empty: beside this program, in ../bin, or in PAWL_BIN_DIR
};

// A pool of warm pawl-builder processes, which never open the GPU. Build may be called from many threads: each call has
// a process to itself and waits for one when all are busy. A process that overran its deadline or died is replaced
// when it is next needed.
class Builder {
 public:
  // FailedPrecondition: no sandbox is to be had. Unavailable: neither NVRTC nor nvcc is there. NotFound: no
  // pawl-builder.
  static absl::StatusOr<std::unique_ptr<Builder>> Create(BuilderOptions options);
  static absl::StatusOr<std::unique_ptr<Builder>> Create(int processes);

  // A candidate's failure is in the reply: what the compiler says, a missing entry, the sandbox, the deadline
  // (request.deadline_seconds, 30 s where it is 0). An error status is a fault of this machine, or CANCELLED: stopped.
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped = nullptr);

  bool sandboxed() const { return sandboxed_; }
  const std::string& description() const { return description_; }  // "NVRTC 13.0, nvcc, sandboxed"
  std::vector<pid_t> idle_processes();

 private:
  using Process = std::unique_ptr<ChildProcess>;
  explicit Builder(BuilderOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Process> Launch() const;
  absl::Status Greet(ChildProcess& process, v1::BuildReply* hello) const;
  absl::StatusOr<Process> Take();
  void GiveBack(Process process);
  absl::StatusOr<v1::BuildReply> BuildOnce(const v1::BuildRequest& request, const Stopped& stopped, bool* killed);

  const BuilderOptions options_;
  bool sandboxed_ = false;
  std::string description_;
  TemporaryFolder folder_{"pawl-builder-"};  // for builders without a sandbox, which has a private /tmp of its own

  std::shared_mutex alone_;  // held exclusively by a build that must have the machine's memory to itself
  std::mutex mutex_;         // guards the two below
  std::condition_variable returned_;
  std::vector<Process> idle_;  // a null one: to be started again
};

}  // namespace pawl
