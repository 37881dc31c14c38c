#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/runner/driver/cupti.h"

namespace pawl {

// Counters of single launches, by CUPTI's range profiler. Not for a process that times: what is measured runs slower.
class RangeProfiler {
 public:
  RangeProfiler() = default;
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // Loads CUPTI and asks the GPU of the current context for its counters, once. Unavailable: why that is impossible.
  absl::Status Open(const std::string& library, int device);

  struct Counters {
    std::vector<std::map<std::string, double>> launches;  // metric to value, in the order of the launches
    std::vector<std::string> missing;                     // metrics that this GPU or CUPTI lacks
  };
  // `prepare` and `launch` are called for each pass; only the kernels of `launch`, so many, are measured.
  absl::StatusOr<Counters> Measure(const std::vector<std::string>& metrics, size_t launches,
                                   const std::function<absl::Status()>& prepare,
                                   const std::function<absl::Status()>& launch);

 private:
  // The counters that a list of metrics needs, by passes.
  struct Config {
    std::vector<std::string> metrics, missing;
    std::vector<const char*> names;  // of `metrics`
    std::vector<uint8_t> image;
    void* host = nullptr;  // evaluates them
  };
  absl::StatusOr<const Config*> ConfigFor(const std::vector<std::string>& metrics);
  absl::StatusOr<void*> MakeHost();
  absl::Status Passes(void* profiler, const std::function<absl::Status()>& prepare,
                      const std::function<absl::Status()>& launch);
  absl::StatusOr<Counters> MeasureWith(void* profiler, const Config& config, size_t launches,
                                       const std::function<absl::Status()>& prepare,
                                       const std::function<absl::Status()>& launch);

  const Cupti* cupti_ = nullptr;
  CUcontext context_ = nullptr;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::map<std::vector<std::string>, Config> configs_;
};

}  // namespace pawl
