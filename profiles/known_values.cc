#include <map>

#include "profiles/metrics.h"

namespace pawl {
namespace {

using Reader = std::optional<double> (*)(const v1::LaunchEvidence&, const v1::GpuInfo&);

// In these fields 0 means unset.
std::optional<double> Positive(double value) { return value > 0 ? std::optional<double>(value) : std::nullopt; }

double Count(const v1::Dim3& dim) { return static_cast<double>(dim.x()) * dim.y() * dim.z(); }

// From Ampere on the driver keeps 1 KiB of shared memory in every block for itself, and ncu counts it.
double Reserved(const v1::GpuInfo& gpu) { return gpu.compute_major() >= 8 ? 1024 : 0; }

const std::map<std::string, Reader>& Readers() {
  static const auto& readers = *new std::map<std::string, Reader>{
      {"grid_size",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo&) { return Positive(Count(l.geometry().grid())); }},
      {"block_size",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo&) { return Positive(Count(l.geometry().block())); }},
      {"registers",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo&) { return Positive(l.resources().registers()); }},
      {"blocks_per_sm",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo&) { return Positive(l.resources().blocks_per_sm()); }},
      {"local_bytes",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo&) {
         return l.has_resources() ? std::optional<double>(l.resources().local_bytes()) : std::nullopt;
       }},
      {"shared_per_block",
       [](const v1::LaunchEvidence& l, const v1::GpuInfo& gpu) {
         if (!l.has_geometry() || !l.has_resources()) return std::optional<double>();
         return std::optional<double>(l.resources().static_shared_bytes() + l.geometry().shared_bytes() +
                                      Reserved(gpu));
       }},
      {"sm_count", [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.sm_count()); }},
      {"max_warps_per_sm",
       [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.max_threads_per_sm() / 32); }},
      {"max_blocks_per_sm",
       [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.max_blocks_per_sm()); }},
      {"registers_per_sm",
       [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.registers_per_sm()); }},
      {"shared_per_sm",
       [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.shared_per_sm()); }},
      {"l2_bytes", [](const v1::LaunchEvidence&, const v1::GpuInfo& gpu) { return Positive(gpu.l2_bytes()); }},
  };
  return readers;
}

}  // namespace

std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  for (const auto& [name, reader] : Readers()) names.push_back(name);
  return names;
}

std::optional<double> KnownValue(const std::string& name, const v1::LaunchEvidence& launch, const v1::GpuInfo& gpu) {
  const auto reader = Readers().find(name);
  return reader == Readers().end() ? std::nullopt : reader->second(launch, gpu);
}

}  // namespace pawl
