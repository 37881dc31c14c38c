#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/builder.pb.h"
#include "pawl/v1/doctor.pb.h"

namespace pawl {

// A program that was asked something.
struct Asked {
  bool found = false;  // there is such a program
  bool ok = false;     // it ended with 0
  bool timed_out = false;
  std::string out;  // standard output
  std::string err;  // standard error, or why it could not be started
};

struct GpuSeen {
  std::string name;
  int64_t memory_bytes = 0;
  int compute_mode = 0;  // CUDA's: 0 default, 2 prohibited, 3 exclusive process
  int compute_major = 0;
  int compute_minor = 0;
};

struct DriverSeen {
  std::string load_error;  // of libcuda.so.1; empty: loaded
  int cuda_version = 0;    // 13000 for 13.0
  std::string init_error;  // of cuInit or what follows; empty: fine
  std::vector<GpuSeen> gpus;
};

struct DiskSeen {
  std::string folder;
  std::string use;  // what Pawl writes there
  int64_t free_bytes = 0;
};

// What came of trying to compile on a machine.
struct BuildsSeen {
  std::string nvrtc_version;  // "13.0"; empty: unknown
  absl::Status sandbox;       // FailedPrecondition: builds can't be sandboxed here
  absl::Status run_sandbox;   // FailedPrecondition: processes that open the GPU can't be sandboxed here
  // Of a tiny kernel by NVRTC, and of one that includes a file of this machine. An error: no builder process starts.
  absl::StatusOr<v1::BuildReply> build = absl::UnavailableError("no builder was asked");
  absl::StatusOr<v1::BuildReply> theft = absl::UnavailableError("no builder was asked");
};

// What was seen of a machine; what follows from it is in worker/host/doctor.h.
struct Machine {
  DriverSeen driver;
  Asked processes;  // nvidia-smi: pid and memory of each process on the GPU
  Asked nvcc;       // --version
  BuildsSeen builds;
  Asked ncu;                         // --version
  Asked ncu_metrics;                 // --query-metrics
  std::vector<std::string> metrics;  // the ncu names Pawl asks for
  std::string driver_params;         // /proc/driver/nvidia/params
  bool privileged = false;           // root or CAP_SYS_ADMIN
  std::optional<Asked> counters;     // a real ncu run over a small kernel, where one was made
  Asked sanitizer;                   // compute-sanitizer --version
  Asked pytorch;                     // prints its version and whether it sees the GPU
  std::vector<DiskSeen> disks;
};

// What needs the rest of the worker: it is passed in, so that this folder stays below it. Either may be empty.
struct MachineProbes {
  // Compiles tiny kernels for the GPUs that were seen (worker/build/build_probe.h).
  std::function<BuildsSeen(const DriverSeen& driver)> builds;
  // Profiles one tiny kernel: the only sure way to know whether counters can be read. Called only where there are a GPU
  // and ncu.
  std::function<Asked()> counters;
};

// Whether the driver's control device is there, also as WSL calls it. A GPU that is there may still not work.
bool HasGpu();
// What the driver calls the first one, "NVIDIA H200"; empty: there is none, or the driver does not tell.
std::string FirstGpuName();
// As many as CUDA shows: by the driver's devices, or CUDA_VISIBLE_DEVICES where that is set.
int CountGpus();

// Looks at this machine. Slow probes run in parallel, each with a deadline; about a minute in the worst case.
Machine LookAtMachine(const MachineProbes& probes);

// Says of everything a campaign needs whether this machine has it, and how to get it. Pure.
v1::DoctorReport Examine(const Machine& machine);

}  // namespace pawl
