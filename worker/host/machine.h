#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/builder.pb.h"

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

// What was seen of a machine, apart from what is to be thought of it (worker/doctor.h).
struct Machine {
  DriverSeen driver;
  Asked processes;            // nvidia-smi: pid and memory of each process on the GPU
  Asked nvcc;                 // --version
  std::string nvrtc_version;  // "13.0"; empty: unknown
  absl::Status sandbox;       // FailedPrecondition: builds can't be locked in here
  absl::Status run_sandbox;   // FailedPrecondition: what opens the GPU can't
  // Of a tiny kernel by NVRTC, and of one that includes a file of this machine. An error: no builder process to be had.
  absl::StatusOr<v1::BuildReply> build = absl::UnavailableError("no builder was asked");
  absl::StatusOr<v1::BuildReply> theft = absl::UnavailableError("no builder was asked");
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

// Profiles one tiny kernel: the only sure way to know whether counters can be read.
using CounterProbe = std::function<Asked()>;

// Looks at this machine. What is slow runs side by side, each with a deadline; about a minute at the very worst. The
// probe is asked only where there are a GPU and ncu, and may be empty.
Machine LookAtMachine(const CounterProbe& counters);

}  // namespace pawl
