#include "absl/strings/str_cat.h"
#include "orchestrator/engine/search/patterns.h"
#include "profiles/gpus.h"

namespace pawl {

std::string SmArchitecture(const v1::GpuInfo& gpu) {
  const GpuSpec* known = gpu.compute_major() <= 0 ? FindGpu(gpu.name()) : nullptr;
  const v1::GpuInfo& info = known == nullptr ? gpu : known->info;
  return info.compute_major() <= 0 ? "" : absl::StrCat("sm_", info.compute_major(), info.compute_minor());
}

}  // namespace pawl
