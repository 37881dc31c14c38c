#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/builder.h"
#include "worker/build/built_variant.h"
#include "worker/host/toolkit.h"
#include "worker/process/process.h"
#include "worker/sandbox/sandboxing.h"
#include "worker/trial/runner_process.h"

namespace pawl {

// One GPU with what it takes to examine variants on it: builders, the candidates' runner, and the reference process.
// Building is thread-safe; everything that touches the GPU is for one thread at a time.
class CudaDevice {
 public:
  struct Options {
    int device = 0;
    int builders = 1;
    bool allow_unsandboxed = false;
  };
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(const Options& options);

  Builder& builder() { return *builder_; }
  RunnerProcess& runner() { return *runner_; }
  RunnerProcess& reference() { return *reference_; }
  const v1::GpuInfo& gpu() const { return gpu_; }
  const Toolkit& toolkit() const { return toolkit_; }
  const std::string& support_cubin() const { return support_cubin_; }
  const std::string& runner_program() const { return runner_program_; }
  const Sandboxing& sandboxing() const { return sandboxing_; }
  bool sandboxed() const { return sandboxing_.on() && builder_->sandboxed(); }
  int ordinal() const { return options_.device; }

  // From now on: while it holds, what runs on the GPU is killed, and whoever waits for it gets CANCELLED.
  void StopWhen(const Stopped& stopped);
  const Stopped& stopped() const { return stopped_; }

  // Builds the bundle's reference at a size, so that CheckOutputs need not. InvalidArgument: it does not build.
  // Thread-safe.
  absl::Status BuildReferenceAhead(const v1::Bundle& bundle, const v1::Size& size, const Stopped& stopped = nullptr);

  // Compares the outputs that lie in shared memory with the reference's for these seeds. InvalidArgument is the
  // bundle's fault: its reference does not build or run. ResourceExhausted: the GPU's memory does not hold it. Any
  // other status is the machine's fault.
  absl::StatusOr<v1::CheckReply> CheckOutputs(const v1::Bundle& bundle, const v1::Plan& plan,
                                              const std::vector<uint64_t>& seeds, bool self_test);

 private:
  explicit CudaDevice(Options options) : options_(options) {}

  const Options options_;
  Toolkit toolkit_;
  Sandboxing sandboxing_;
  std::string runner_program_, support_cubin_;
  Fd shared_;
  std::unique_ptr<Builder> builder_;
  std::unique_ptr<RunnerProcess> runner_, reference_;
  v1::GpuInfo gpu_;
  ReferenceCache references_;
  Stopped stopped_;
};

// A seed nobody can guess.
uint64_t SecretSeed();

}  // namespace pawl
