#pragma once

#include <vector>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/check.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/built_variant.h"
#include "worker/build/compiler.h"

namespace pawl {

// Every variant that differs from the start in one variable, as far as constraints allow it, built at one size, in the
// order of kernel.toml. `threads` builds run side by side. A status is the machine's fault.
absl::StatusOr<std::vector<v1::CheckChange>> BuildSingleChanges(Compiler& builder, const v1::Bundle& bundle,
                                                                const BuiltVariant& start, const v1::Size& size,
                                                                const v1::GpuInfo& gpu, int threads,
                                                                const Stopped& stopped = nullptr);

// The variables of which no change made other code or another geometry.
std::vector<std::string> VariablesWithoutEffect(const std::vector<v1::CheckChange>& changes);

}  // namespace pawl
