#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "worker/builder.h"

namespace pawl {

// A variant at one size: what to launch, and the code. Sizes share a cubin unless the source fixes them.
struct BuiltSize {
  v1::Plan plan;
  std::shared_ptr<const std::string> cubin;
  std::string module;  // content hash of the cubin: what a runner knows it by
};

// A variant ready for a runner, or why it is none.
struct BuiltVariant {
  v1::Variant variant;
  std::optional<v1::Failure> failure;
  std::vector<BuiltSize> sizes;  // in the order asked for
  double seconds = 0;
  double compile_seconds = 0;  // of them the compiler's

  const BuiltSize* Find(const std::string& size) const;
};

// Evaluates the launches at each size, checks them against the GPU's limits, and only then compiles.
// A status is the machine's fault. Thread-safe.
absl::StatusOr<BuiltVariant> BuildVariant(Builder& builder, const v1::Bundle& bundle, const v1::Variant& variant,
                                          const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu);

// The same for the bundle's reference, whose failure is the bundle's fault: a status. Cubins that are in `cache` (by
// bundle and compile options) are not built again.
using ReferenceCache = std::map<std::string, std::shared_ptr<const std::string>>;
absl::StatusOr<BuiltSize> BuildReference(Builder& builder, const v1::Bundle& bundle, const v1::Size& size,
                                         const v1::GpuInfo& gpu, ReferenceCache* cache);

std::string ArchitectureOf(const v1::GpuInfo& gpu);  // sm_90

}  // namespace pawl
