#include "orchestrator/engine/state/bundle_space.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr size_t kMaxRemembered = 100'000;  // variants of one GPU and size

// In the order of the bundle's variables; nothing: it is no variant of the bundle.
std::optional<std::string> ValuesOf(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::string bytes;
  if (variant.values_size() != bundle.variables_size()) return std::nullopt;
  for (const v1::Variable& variable : bundle.variables()) {
    const auto value = variant.values().find(variable.name());
    if (value == variant.values().end()) return std::nullopt;
    bytes.append(reinterpret_cast<const char*>(&value->second), sizeof(value->second));
  }
  return bytes;
}

std::string WhyBeyond(const absl::StatusOr<v1::Plan>& plan, const v1::GpuInfo& gpu) {
  if (!plan.ok()) return "";  // the worker's static check says what is wrong with it
  const std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, gpu);
  return failure ? failure->message() : "";
}

}  // namespace

absl::StatusOr<bool> BundleSpace::Allows(const v1::Variant& variant) const {
  absl::MutexLock lock(&mutex_);
  return allowed_.Has(variant);
}

absl::StatusOr<std::string> BundleSpace::Forbidding(const v1::Variant& variant) const {
  absl::MutexLock lock(&mutex_);
  return allowed_.Forbidding(variant);
}

absl::StatusOr<v1::Plan> BundleSpace::PlanOf(const v1::Variant& variant, const v1::Size& size,
                                             const v1::GpuInfo& gpu) const {
  absl::MutexLock lock(&mutex_);
  return planner_.MakePlan(variant, size, gpu);
}

std::string BundleSpace::ModelOf(v1::GpuInfo gpu) {
  gpu.clear_uuid();
  return gpu.SerializeAsString();
}

std::string BundleSpace::BeyondLimits(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu,
                                      const std::string& model) const {
  const std::optional<std::string> values = ValuesOf(*bundle_, variant);
  const std::string at = absl::StrCat(size.name(), "\n", model);
  absl::MutexLock lock(&mutex_);
  if (!values) return WhyBeyond(planner_.MakePlan(variant, size, gpu), gpu);
  Whys& whys = beyond_limits_[at];
  if (whys.size() > kMaxRemembered) whys.clear();
  const auto [known, is_new] = whys.try_emplace(*values);
  if (is_new) known->second = WhyBeyond(planner_.MakePlan(variant, size, gpu), gpu);
  return known->second;
}

}  // namespace pawl
