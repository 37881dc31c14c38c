// The GPUs of gpus/*.toml: limits, peak rates, price, noise of measurements, thresholds of their own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

struct GpuSpec {
  v1::GpuInfo info;  // the limits; the name is the first of `names`; uuid and driver are empty
  double fp32_tflops = 0;
  double fp16_tensor_tflops = 0;  // dense
  double dram_gb_s = 0;
  double l2_gb_s = 0;  // a generous ceiling: a time below bytes / ceiling is impossible
  double price_per_hour = 0;
  v1::ProcessNoise noise;          // as measured; UnknownNoise where the file has none
  std::string file;                // "h200" for gpus/h200.toml
  std::vector<std::string> names;  // as the driver spells them
  // Rule, then metric: replaces the threshold of that condition of the decision tree.
  std::map<std::string, std::map<std::string, double>> thresholds;
};

// `name` is the file's name without .toml. Every mistake as "file:line: message", one a line.
absl::StatusOr<GpuSpec> ParseGpu(std::string_view toml, const std::string& name);

// Those that were built in, sorted by file name.
const std::vector<GpuSpec>& KnownGpus();

// By the driver's name ("NVIDIA H200") or the file's ("h200"), whatever the case; null when not known.
const GpuSpec* FindGpu(const std::string& nvidia_name);

// What a comparison on the GPU of that name assumes before it has measured anything itself.
v1::ProcessNoise NoiseOf(const std::string& nvidia_name);

}  // namespace pawl
