#include "worker/check/single_changes.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "kernels/space.h"

namespace pawl {
namespace {

struct SingleChange {
  v1::Change change;
  v1::Variant variant;
};

absl::StatusOr<std::vector<SingleChange>> SingleChanges(const v1::Bundle& bundle) {
  std::vector<SingleChange> changes;
  AllowedSpace allowed(bundle);
  const v1::Variant start = StartVariant(bundle);
  for (const v1::Variable& variable : bundle.variables()) {
    for (const int32_t value : variable.values()) {
      if (value == variable.start()) continue;
      SingleChange single;
      single.variant = start;
      (*single.variant.mutable_values())[variable.name()] = value;
      const absl::StatusOr<bool> has = allowed.Has(single.variant);
      if (!has.ok()) return has.status();
      if (!*has) continue;
      single.change.set_variable(variable.name());
      single.change.set_from(variable.start());
      single.change.set_to(value);
      changes.push_back(std::move(single));
    }
  }
  return changes;
}

// The same launches with the same arguments.
bool SameLaunches(const v1::Plan& a, const v1::Plan& b) {
  if (a.launches_size() != b.launches_size() || a.tensors_size() != b.tensors_size()) return false;
  for (int i = 0; i < a.launches_size(); ++i) {
    if (a.launches(i).SerializeAsString() != b.launches(i).SerializeAsString()) return false;
  }
  for (int i = 0; i < a.tensors_size(); ++i) {
    if (a.tensors(i).elements() != b.tensors(i).elements()) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<v1::CheckChange>> BuildSingleChanges(Compiler& builder, const v1::Bundle& bundle,
                                                                const BuiltVariant& start, const v1::Size& size,
                                                                const v1::GpuInfo& gpu, int threads,
                                                                const Stopped& stopped) {
  const absl::StatusOr<std::vector<SingleChange>> singles = SingleChanges(bundle);
  if (!singles.ok()) return singles.status();
  std::vector<v1::CheckChange> changes(singles->size());
  std::vector<absl::Status> faults(singles->size(), absl::OkStatus());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < singles->size(); i = next++) {
      changes[i] = v1::CheckChange();
      *changes[i].mutable_change() = (*singles)[i].change;
      const absl::StatusOr<BuiltVariant> built =
          BuildVariant(builder, bundle, (*singles)[i].variant, {size}, gpu, stopped, &bundle);
      faults[i] = built.status();
      if (!built.ok()) continue;
      changes[i].set_seconds(built->seconds);
      if (built->failure) {
        *changes[i].mutable_failure() = *built->failure;
      } else if (!start.sizes.empty() && !built->sizes.empty()) {
        changes[i].set_same_code(built->sizes[0].module == start.sizes[0].module &&
                                 SameLaunches(built->sizes[0].plan, start.sizes[0].plan));
      }
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  for (const absl::Status& fault : faults) {
    if (!fault.ok()) return fault;
  }
  return changes;
}

std::vector<std::string> VariablesWithoutEffect(const std::vector<v1::CheckChange>& changes) {
  std::map<std::string, bool> effect;
  for (const v1::CheckChange& change : changes) {
    bool& has = effect.try_emplace(change.change().variable(), false).first->second;
    has = has || !change.same_code();
  }
  std::vector<std::string> without;
  for (const auto& [variable, has] : effect) {
    if (!has) without.push_back(variable);
  }
  return without;
}

}  // namespace pawl
