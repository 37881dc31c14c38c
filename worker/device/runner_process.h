#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "pawl/v1/runner.pb.h"
#include "worker/process/child_process.h"
#include "worker/sandbox/sandboxing.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// Owns a pawl-runner process and starts a fresh one when the last has ended: a candidate that faults or hangs takes its
// runner with it, never this object. The fresh one may have been started ahead, as a spare. One thread at a time.
class RunnerProcess : public KernelProcess {
 public:
  struct Options {
    std::string program;  // pawl-runner
    int device = 0;
    int shared_fd = -1;                      // memory that runner and reference share
    std::string support_cubin;               // empty: it can only describe the GPU until SetSupportCubin
    const Sandboxing* sandboxing = nullptr;  // to lock it in; null: not at all. Must outlive this
    // A folder of the worker's own makes it a runner that reads counters: locked in as ncu is, without shared memory.
    std::string counters_folder = {};
    std::map<std::string, std::string> env = {};
  };
  explicit RunnerProcess(Options options) : options_(std::move(options)) {}

  // Starts the process and creates the context, if that has not happened. An error is the machine's fault.
  absl::Status Open();
  // Starts the process that replaces the present one when that has ended, and lets it create its context meanwhile.
  absl::Status OpenSpare() override;
  void EndSpare() override;
  // Waits until the spare process has its context.
  void Settle();
  // Gives this and all later processes Pawl's own kernels, which can only be built once the GPU is known.
  absl::Status SetSupportCubin(const std::string& cubin);
  // From now on: while it holds, a call that waits for a reply kills the process and returns CANCELLED.
  void StopWhen(Stopped stopped) { stopped_ = std::move(stopped); }
  void Restart() override;
  void UnloadAll() override;
  bool served_others() const override { return served_others_; }
  absl::StatusOr<v1::RunnerReply> Ask(const v1::RunnerRequest& request, absl::Duration deadline) override;
  // The last few that were asked for stay loaded.
  absl::StatusOr<v1::RunnerReply> Load(const std::string& id, const std::string& cubin,
                                       const google::protobuf::RepeatedPtrField<v1::PlanLaunch>& launches) override;

  absl::StatusOr<v1::RunnerReply> Provide(const v1::ProvideRequest& request) override;
  absl::StatusOr<v1::RunnerReply> ProvideFile(const std::string& id, const std::string& content) override;
  bool HasEntry(const std::string& pool, uint32_t entry) const override;

  const v1::GpuInfo& gpu() const { return gpu_; }
  // Seconds that requests took inside the process: launches, copies and waiting for the GPU.
  double busy_seconds() const { return busy_seconds_; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }
  pid_t spare_pid() const { return spare_ ? spare_->pid() : 0; }

 private:
  absl::StatusOr<v1::RunnerReply> Exchange(const v1::RunnerRequest& request, absl::Duration deadline);
  absl::StatusOr<v1::RunnerReply> Reply(absl::Status status, SteadyTime until, absl::Duration deadline);

  absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn() const;
  void EndAll();
  absl::Status SendOpen();
  v1::RunnerRequest OpenRequest() const;
  absl::Status ReadOpened(absl::StatusOr<v1::RunnerReply> reply);

  Options options_;
  std::unique_ptr<ChildProcess> child_, spare_;
  SteadyTime spare_opens_until_ = SteadyTime::InfinitePast();  // past: its reply to the request to open has been read
  struct Loaded {
    std::map<std::string, v1::LoadReply> replies;  // by the launches they are about
    uint64_t used = 0;  // grows with each Load: the least recently asked for goes first when there are too many
  };
  std::map<std::string, Loaded> loaded_;
  uint64_t uses_ = 0;
  bool served_others_ = false;
  std::map<std::string, std::set<uint32_t>> pools_;  // entries that the process has
  v1::GpuInfo gpu_;
  double busy_seconds_ = 0;
  Stopped stopped_;
};

}  // namespace pawl
