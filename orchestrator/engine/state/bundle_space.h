#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// A bundle, and what its variants are: which of them its constraints allow, how they are launched, and what a GPU could
// not launch. Campaigns of one bundle share it: its expressions are parsed once, and a variant is looked at once for
// all of them. Thread-safe.
class BundleSpace {
 public:
  explicit BundleSpace(std::shared_ptr<const v1::Bundle> bundle)
      : bundle_(std::move(bundle)), allowed_(*bundle_), planner_(*bundle_) {}

  const v1::Bundle& bundle() const { return *bundle_; }
  const std::shared_ptr<const v1::Bundle>& shared_bundle() const { return bundle_; }

  // As AllowedSpace has them.
  absl::StatusOr<bool> Allows(const v1::Variant& variant) const;
  absl::StatusOr<std::string> Forbidding(const v1::Variant& variant) const;
  // Its launches at one of the bundle's sizes.
  absl::StatusOr<v1::Plan> PlanOf(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu) const;
  // Why the GPU could not launch it there, from its geometry and shared memory alone; empty: it could.
  // `model` is ModelOf(gpu), which takes longer than to look a variant up.
  std::string BeyondLimits(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu,
                           const std::string& model) const;
  // What GPUs of a fleet that are alike have in common.
  static std::string ModelOf(v1::GpuInfo gpu);

 private:
  const std::shared_ptr<const v1::Bundle> bundle_;
  mutable absl::Mutex mutex_;
  // mutable: parsers keep the values that they were last given.
  mutable AllowedSpace allowed_ ABSL_GUARDED_BY(mutex_);
  mutable Planner planner_ ABSL_GUARDED_BY(mutex_);
  using Whys = std::unordered_map<std::string, std::string>;                   // by the variant's values
  mutable std::map<std::string, Whys> beyond_limits_ ABSL_GUARDED_BY(mutex_);  // by GPU and size
};

}  // namespace pawl
