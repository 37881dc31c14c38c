#include "profiles/gpus.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "profiles/embedded.h"
#include "profiles/keep_rule.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

// A section of a GPU's file whose values are all required and positive.
class Section {
 public:
  Section(TomlFile* file, const char* name) : file_(file), table_(file->root()[name].as_table()) {
    if (!table_) file_->Note(1, absl::StrCat("the section [", name, "] is missing"));
  }

  double Positive(const std::string& key) {
    if (!table_) return 0;
    const double value = file_->RequiredNumber(*table_, key);
    if (table_->contains(key) && value <= 0) Note(key, "must be above 0");
    return value;
  }

  template <typename Integer>
  Integer Whole(const std::string& key) {
    const double value = Positive(key);
    if (value == std::floor(value) && value <= static_cast<double>(std::numeric_limits<Integer>::max())) {
      return static_cast<Integer>(value);
    }
    Note(key, "must be a whole number");
    return 0;
  }

  const toml::table* table() const { return table_; }
  void Note(const std::string& key, const std::string& what) {
    file_->Note(TomlFile::LineOf(*table_, key), absl::StrCat("\"", key, "\" ", what));
  }

 private:
  TomlFile* file_;
  const toml::table* table_;
};

void ReadLimits(TomlFile* file, v1::GpuInfo* info) {
  Section limits(file, "limits");
  if (!limits.table()) return;
  file->AllowKeys(*limits.table(), {"compute_capability", "sm_count", "max_threads_per_sm", "max_threads_per_block",
                                    "max_blocks_per_sm", "registers_per_sm", "shared_per_sm", "shared_per_block_optin",
                                    "l2_bytes", "memory_bytes", "max_sm_clock_mhz", "max_memory_clock_mhz"});
  const std::vector<std::string> capability =
      absl::StrSplit(file->RequiredText(*limits.table(), "compute_capability"), '.');
  int major = 0, minor = 0;
  if (capability.size() == 2 && absl::SimpleAtoi(capability[0], &major) && absl::SimpleAtoi(capability[1], &minor)) {
    info->set_compute_major(major);
    info->set_compute_minor(minor);
  } else if (limits.table()->contains("compute_capability")) {
    limits.Note("compute_capability", "must look like \"9.0\"");
  }
  info->set_sm_count(limits.Whole<int32_t>("sm_count"));
  info->set_max_threads_per_sm(limits.Whole<int32_t>("max_threads_per_sm"));
  info->set_max_threads_per_block(limits.Whole<int32_t>("max_threads_per_block"));
  info->set_max_blocks_per_sm(limits.Whole<int32_t>("max_blocks_per_sm"));
  info->set_registers_per_sm(limits.Whole<int32_t>("registers_per_sm"));
  info->set_shared_per_sm(limits.Whole<int32_t>("shared_per_sm"));
  info->set_shared_per_block_optin(limits.Whole<int32_t>("shared_per_block_optin"));
  info->set_l2_bytes(limits.Whole<int64_t>("l2_bytes"));
  info->set_memory_bytes(limits.Whole<int64_t>("memory_bytes"));
  info->set_max_sm_clock_mhz(limits.Whole<int32_t>("max_sm_clock_mhz"));
  info->set_max_memory_clock_mhz(limits.Whole<int32_t>("max_memory_clock_mhz"));
}

void ReadNoise(TomlFile* file, GpuSpec* gpu) {
  gpu->noise = UnknownNoise();
  if (!file->root().contains("noise")) return;
  Section noise(file, "noise");
  if (!noise.table()) return;
  file->AllowKeys(*noise.table(), {"process_sd", "process_degrees", "anchor_sd", "anchor_degrees"});
  const double process = noise.Positive("process_sd"), anchor = noise.Positive("anchor_sd");
  gpu->noise.set_variance(process * process);
  gpu->noise.set_degrees(noise.Positive("process_degrees"));
  gpu->noise.set_anchor_variance(anchor * anchor);
  gpu->noise.set_anchor_degrees(noise.Positive("anchor_degrees"));
}

void ReadThresholds(TomlFile* file, GpuSpec* gpu) {
  const toml::node* node = file->root().get("thresholds");
  if (!node) return;
  const auto expect = [&](const toml::node& at) {
    file->Note(TomlFile::LineOf(at), "thresholds are written [thresholds.RULE] and below it METRIC = NUMBER");
  };
  if (!node->is_table()) return expect(*node);
  for (const auto& [rule, metrics] : *node->as_table()) {
    if (!metrics.is_table()) {
      expect(metrics);
      continue;
    }
    for (const auto& [metric, value] : *metrics.as_table()) {
      const std::optional<double> number = file->Number(*metrics.as_table(), std::string(metric.str()));
      if (number) gpu->thresholds[std::string(rule.str())][std::string(metric.str())] = *number;
    }
  }
}

}  // namespace

absl::StatusOr<GpuSpec> ParseGpu(std::string_view toml, const std::string& name) {
  TomlFile file(toml, absl::StrCat("profiles/gpus/", name, ".toml"));
  if (!file.status().ok()) return file.status();
  GpuSpec gpu;
  gpu.file = name;
  file.AllowKeys(file.root(), {"names", "price_per_hour", "limits", "peak", "noise", "thresholds"});
  gpu.names = file.Texts(file.root(), "names");
  if (gpu.names.empty()) file.Note(1, "\"names\" must hold the driver's name of the GPU, such as \"NVIDIA H200\"");
  gpu.price_per_hour = file.RequiredNumber(file.root(), "price_per_hour");
  if (gpu.price_per_hour < 0) file.Note(TomlFile::LineOf(file.root(), "price_per_hour"), "the price is below 0");
  ReadLimits(&file, &gpu.info);
  if (Section peak(&file, "peak"); peak.table()) {
    file.AllowKeys(*peak.table(), {"fp32_tflops", "fp16_tensor_tflops", "dram_gb_s", "l2_gb_s"});
    gpu.fp32_tflops = peak.Positive("fp32_tflops");
    gpu.fp16_tensor_tflops = peak.Positive("fp16_tensor_tflops");
    gpu.dram_gb_s = peak.Positive("dram_gb_s");
    gpu.l2_gb_s = peak.Positive("l2_gb_s");
  }
  ReadNoise(&file, &gpu);
  ReadThresholds(&file, &gpu);
  if (!file.status().ok()) return file.status();
  gpu.info.set_name(gpu.names.front());
  return gpu;
}

const std::vector<GpuSpec>& KnownGpus() {
  static const auto& gpus = *new std::vector<GpuSpec>{
      ParseGpu(embedded::kGpusA100Toml, "a100").value(),
      ParseGpu(embedded::kGpusA10040gbToml, "a100_40gb").value(),
      ParseGpu(embedded::kGpusH100Toml, "h100").value(),
      ParseGpu(embedded::kGpusH100PcieToml, "h100_pcie").value(),
      ParseGpu(embedded::kGpusH200Toml, "h200").value(),
      ParseGpu(embedded::kGpusL4Toml, "l4").value(),
      ParseGpu(embedded::kGpusRtx3090Toml, "rtx3090").value(),
      ParseGpu(embedded::kGpusRtx4090Toml, "rtx4090").value(),
  };
  return gpus;
}

const GpuSpec* FindGpu(const std::string& nvidia_name) {
  for (const GpuSpec& gpu : KnownGpus()) {
    if (absl::EqualsIgnoreCase(gpu.file, nvidia_name)) return &gpu;
    for (const std::string& name : gpu.names) {
      if (absl::EqualsIgnoreCase(name, nvidia_name)) return &gpu;
    }
  }
  return nullptr;
}

v1::ProcessNoise NoiseOf(const std::string& nvidia_name) {
  const GpuSpec* gpu = FindGpu(nvidia_name);
  return gpu == nullptr ? UnknownNoise() : gpu->noise;
}

}  // namespace pawl
