#include "orchestrator/engine/search/architecture.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "profiles/gpus.h"

namespace pawl {

std::string ArchitectureOf(const v1::GpuInfo& gpu, const std::string& device) {
  const v1::GpuInfo* named = &gpu;
  if (gpu.compute_major() <= 0) {
    size_t longest = 0;  // one GPU's name may be a prefix of another's
    for (const GpuSpec& known : KnownGpus()) {
      for (const std::string& name : known.names) {
        if (name.size() <= longest || !absl::StrContains(device, name)) continue;
        longest = name.size();
        named = &known.info;
      }
    }
  }
  if (named->compute_major() <= 0) return "";
  return absl::StrCat("sm_", named->compute_major(), named->compute_minor());
}

}  // namespace pawl
