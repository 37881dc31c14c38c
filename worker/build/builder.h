#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/builder.pb.h"
#include "worker/build/compiler.h"
#include "worker/host/machine.h"
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
// a process to itself and waits for one when all are busy. A process that overran its deadline or died, or in which
// nvcc ran, is replaced when one is next needed.
class Builder : public Compiler {
 public:
  // FailedPrecondition: no sandbox is available. Unavailable: neither NVRTC nor nvcc is there. NotFound: no
  // pawl-builder.
  static absl::StatusOr<std::unique_ptr<Builder>> Create(BuilderOptions options);
  static absl::StatusOr<std::unique_ptr<Builder>> Create(int processes);

  ~Builder() override;

  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped = nullptr) override;
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override;

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

  // What each of threads_ does, until the end: a process that a thread started would die with it.
  void Work();

  const BuilderOptions options_;
  bool sandboxed_ = false;
  std::string description_;
  TemporaryFolder folder_{"pawl-builder-"};  // for builders without a sandbox, which has a private /tmp of its own

  absl::Mutex alone_;  // held exclusively by a build that must have the machine's memory to itself
  absl::Mutex mutex_;
  absl::CondVar returned_;
  std::vector<Process> idle_ ABSL_GUARDED_BY(mutex_);  // a null one: to be started again

  absl::Mutex work_mutex_;
  absl::CondVar work_changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(work_mutex_);
  bool ending_ ABSL_GUARDED_BY(work_mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(work_mutex_);  // one for each process, started when needed
};

// Tries what builds need on this machine: NVRTC, the sandboxes, a compilation that must pass and one that must fail.
BuildsSeen ProbeBuilds(const DriverSeen& driver);

}  // namespace pawl
