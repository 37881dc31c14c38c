#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/recording.pb.h"
#include "pawl/v1/runner.pb.h"
#include "profiles/metrics.h"
#include "worker/build/built_variant.h"
#include "worker/build/compiler.h"
#include "worker/problem/problem_server.h"
#include "worker/process/process.h"
#include "worker/validate/input_draws.h"
#include "worker/validate/provided_inputs.h"

namespace pawl {

// A process that launches kernels: pawl-runner, or a script in tests. One thread at a time.
class KernelProcess {
 public:
  virtual ~KernelProcess() = default;

  // Loads a cubin under an id unless the process has it; the reply holds its resources.
  virtual absl::StatusOr<v1::RunnerReply> Load(const std::string& id, const std::string& cubin,
                                               const google::protobuf::RepeatedPtrField<v1::PlanLaunch>& launches) = 0;
  // Asks and waits. A candidate's fault, a hang or the process's death is the reply's failure; a status is the
  // machine's fault, or CANCELLED.
  virtual absl::StatusOr<v1::RunnerReply> Ask(const v1::RunnerRequest& request, absl::Duration deadline) = 0;
  // Hands over tensors that lie in shared memory, or drops a pool. A failure in the reply: the GPU's memory does not
  // hold them.
  virtual absl::StatusOr<v1::RunnerReply> Provide(const v1::ProvideRequest& request) = 0;
  // Hands over the content of a file under an id, as the only entry of a pool of that name, unless the process has it.
  virtual absl::StatusOr<v1::RunnerReply> ProvideFile(const std::string& id, const std::string& content) = 0;
  // Whether the process has an entry of a pool. A fresh process has none.
  virtual bool HasEntry(const std::string& pool, uint32_t entry) const = 0;
  // No module stays loaded and no pool is kept: what a candidate's globals hold must not be missing for the next.
  virtual void UnloadAll() = 0;
  // Whether variants of earlier trials ran in the present process: memory of the driver's, which one of them may have
  // damaged, outlives modules.
  virtual bool served_others() const = 0;
  // The next request meets a fresh process.
  virtual void Restart() = 0;
  // Starts that process ahead, beside the one there is. Settle() of its device waits for the runner's.
  virtual absl::Status OpenSpare() { return absl::OkStatus(); }
  virtual void EndSpare() {}
};

// What compute-sanitizer found.
struct Sanitizing {
  std::optional<v1::Failure> failure;  // of the first tool, in the order memcheck, racecheck, initcheck, synccheck
  size_t called = 0;                   // so many of the sizes, from the first on, were called under every tool
  double seconds = 0;                  // from the start of the tools to the end of the last
};

// Which tools of compute-sanitizer run.
enum class SanitizerTools {
  kAll,          // for small sizes
  kMemcheck,     // the fastest, for the size that is timed
  kRaceAndInit,  // racecheck and initcheck, for sizes between: as many, from the first on, as fit into a stated time
};

// compute-sanitizer at work. Beside it the GPU may do anything that is not timed. Its destructor kills what still runs.
class SanitizerRun {
 public:
  virtual ~SanitizerRun() = default;
  // Once. A status is the machine's fault. DeadlineExceeded: memcheck did not end in time at a large size, which says
  // nothing about the variant.
  virtual absl::StatusOr<Sanitizing> Wait() = 0;
};

// One variant to profile, with what the driver said of its launches.
struct ProfileItem {
  const BuiltSize* built;
  std::vector<v1::ResourceUse> resources;
  bool matrix_work = false;  // the bundle says that tensor cores can do its work
};

struct Profiling {
  std::vector<v1::Evidence> evidence;  // one an item, in order
  std::string raw;                     // ncu's raw page of all of them, as CSV; empty without counters
  std::vector<std::string> missing;    // metrics that metrics.toml names and this profiler lacks
  double seconds = 0;
  std::string note;  // for a person; empty: nothing to say
};

// One GPU and the programs that examine variants on it. This is the seam of the trial pipeline: CudaDevice is the real
// one, tests script another. The builder and the caches are thread-safe; the rest is for one thread at a time.
class GpuDevice {
 public:
  virtual ~GpuDevice() = default;

  virtual const v1::GpuInfo& gpu() const = 0;
  virtual v1::Toolchain toolchain() const = 0;

  virtual Compiler& builder() = 0;
  virtual ReferenceCache& references() = 0;
  virtual InputLimits& input_limits() = 0;
  virtual KernelProcess& runner() = 0;     // candidates and their parents
  virtual KernelProcess& reference() = 0;  // the bundles' references, which no candidate can reach
  virtual ProblemServer& problem() = 0;    // the bundles' problem.py, which neither can reach
  virtual ProvidedPools& pools() = 0;      // what came from there

  // From now on: while `stopped` holds, what runs on the GPU is killed, and a call that waits for it returns CANCELLED.
  virtual void StopWhen(const Stopped& stopped) = 0;
  virtual const Stopped& stopped() const = 0;

  // Before anything is timed: waits until no process of ours that has nothing to do with it is still starting.
  virtual void Settle() {}

  virtual bool has_sanitizer() const = 0;
  // As pawl::StartSanitizing.
  virtual absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                        SanitizerTools tools) = 0;
  // Ends the process that reads counters, where there is one; the next Profile starts another.
  virtual void EndProfiler() {}
  // As Profiler::Profile, with these metrics.
  virtual absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) = 0;
  virtual const Metrics& metrics() const = 0;
  // Runs the bundle's baseline command at every size, in the bundle's folder; an empty folder: in a temporary one with
  // bundle.baseline_files. Or the baseline of its problem.py.
  virtual absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaseline(const v1::Bundle& bundle,
                                                                     const std::filesystem::path& folder = {}) = 0;
  // The same command at one size, interleaved with a validated variant whose cubin its process loads. A status says why
  // there is no ratio.
  virtual absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) = 0;
  // Builds and runs each form of what `pawl best --output` writes, in the sandbox. CANCELLED is the only error.
  virtual absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(
      const v1::Bundle& bundle, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) = 0;
};

}  // namespace pawl
