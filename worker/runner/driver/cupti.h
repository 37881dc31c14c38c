// The part of CUPTI that Pawl uses, declared here and loaded at run time: Pawl builds without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/runner/driver/cuda_driver.h"

namespace pawl {

using CUptiResult = int;

constexpr int kCuptiAutoRange = 1;   // one for each kernel
constexpr int kCuptiUserReplay = 3;  // the caller launches the kernels again for each pass

// Parameters of the functions, laid out as in cupti_profiler_target.h, cupti_profiler_host.h and
// cupti_range_profiler.h. Each begins with its size up to the end of its last field, without what pads it.
struct CuptiInitialize {
  size_t size;
  void* own;
};
struct CuptiChipName {
  size_t size;
  void* own;
  size_t device;
  const char* chip;
};
struct CuptiAvailability {
  size_t size;
  void* own;
  CUcontext context;
  size_t image_bytes;
  uint8_t* image;
};
struct CuptiHostInitialize {
  size_t size;
  void* own;
  int profiler;  // 0: the range profiler
  const char* chip;
  const uint8_t* availability;
  void* host;
};
struct CuptiHostDeinitialize {
  size_t size;
  void* own;
  void* host;
};
struct CuptiMetricProperties {
  size_t size;
  void* own;
  void* host;
  const char* metric;
  const char* description;
  const char* hardware_unit;
  const char* unit;
  int type;
};
struct CuptiAddMetrics {
  size_t size;
  void* own;
  void* host;
  const char** metrics;
  size_t count;
};
struct CuptiConfigSize {
  size_t size;
  void* own;
  void* host;
  size_t bytes;
};
struct CuptiConfigImage {
  size_t size;
  void* own;
  void* host;
  size_t bytes;
  uint8_t* image;
};
struct CuptiEvaluate {
  size_t size;
  void* own;
  void* host;
  const uint8_t* data;
  size_t data_bytes;
  size_t range;
  const char** metrics;
  size_t count;
  double* values;
};
struct CuptiEnable {
  size_t size;
  void* own;
  CUcontext context;
  void* profiler;
};
struct CuptiOfProfiler {  // Disable, Start
  size_t size;
  void* own;
  void* profiler;
};
struct CuptiStop {
  size_t size;
  void* own;
  void* profiler;
  size_t pass;
  size_t nesting_level;
  uint8_t all_passes;
};
struct CuptiSetConfig {
  size_t size;
  void* own;
  void* profiler;
  size_t config_bytes;
  const uint8_t* config;
  size_t data_bytes;
  uint8_t* data;
  int range;   // kCuptiAutoRange
  int replay;  // kCuptiUserReplay
  size_t max_ranges;
  uint16_t nesting_levels;
  uint16_t min_nesting_level;
  size_t pass;
  uint16_t target_nesting_level;
};
struct CuptiDataSize {
  size_t size;
  void* own;
  void* profiler;
  const char** metrics;
  size_t count;
  size_t max_ranges;
  uint32_t max_nodes;
  size_t bytes;
};
struct CuptiDataInitialize {
  size_t size;
  void* own;
  void* profiler;
  size_t bytes;
  uint8_t* data;
};
struct CuptiDecode {
  size_t size;
  void* own;
  void* profiler;
  size_t dropped;
};
struct CuptiDataInfo {
  size_t size;
  void* own;
  const uint8_t* data;
  size_t bytes;
  size_t ranges;
};

struct Cupti {
  CUptiResult (*GetResultString)(CUptiResult, const char**);
  CUptiResult (*ProfilerInitialize)(CuptiInitialize*);
  CUptiResult (*DeviceGetChipName)(CuptiChipName*);
  CUptiResult (*ProfilerGetCounterAvailability)(CuptiAvailability*);
  CUptiResult (*ProfilerHostInitialize)(CuptiHostInitialize*);
  CUptiResult (*ProfilerHostDeinitialize)(CuptiHostDeinitialize*);
  CUptiResult (*ProfilerHostGetMetricProperties)(CuptiMetricProperties*);
  CUptiResult (*ProfilerHostConfigAddMetrics)(CuptiAddMetrics*);
  CUptiResult (*ProfilerHostGetConfigImageSize)(CuptiConfigSize*);
  CUptiResult (*ProfilerHostGetConfigImage)(CuptiConfigImage*);
  CUptiResult (*ProfilerHostEvaluateToGpuValues)(CuptiEvaluate*);
  CUptiResult (*RangeProfilerEnable)(CuptiEnable*);
  CUptiResult (*RangeProfilerDisable)(CuptiOfProfiler*);
  CUptiResult (*RangeProfilerStart)(CuptiOfProfiler*);
  CUptiResult (*RangeProfilerStop)(CuptiStop*);
  CUptiResult (*RangeProfilerSetConfig)(CuptiSetConfig*);
  CUptiResult (*RangeProfilerGetCounterDataSize)(CuptiDataSize*);
  CUptiResult (*RangeProfilerCounterDataImageInitialize)(CuptiDataInitialize*);
  CUptiResult (*RangeProfilerDecodeData)(CuptiDecode*);
  CUptiResult (*RangeProfilerGetCounterDataInfo)(CuptiDataInfo*);
};

// Loads the library once a process. Unavailable: it is not there, or older than CUDA 12.6.
absl::StatusOr<const Cupti*> LoadCupti(const std::string& library);

// OK for 0. Unavailable with what happened and what to do: counters that are forbidden, or taken by another tool.
absl::Status CuptiStatus(const Cupti& cupti, CUptiResult result, const char* call);

}  // namespace pawl
