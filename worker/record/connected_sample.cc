#include <deque>
#include <set>

#include "absl/status/statusor.h"
#include "kernels/space.h"
#include "worker/record/recorder.h"

namespace pawl {

absl::StatusOr<std::vector<v1::Variant>> ConnectedSample(const v1::Bundle& bundle, int count) {
  std::vector<v1::Variant> found = {StartVariant(bundle)};
  std::set<std::string> seen = {VariantText(found[0])};
  const size_t most = count > 0 ? count : SIZE_MAX;
  for (size_t next = 0; next < found.size() && found.size() < most; ++next) {
    for (const v1::Variable& variable : bundle.variables()) {
      for (int32_t value : variable.values()) {
        v1::Variant variant = found[next];
        (*variant.mutable_values())[variable.name()] = value;
        if (found.size() >= most || !seen.insert(VariantText(variant)).second) continue;
        absl::StatusOr<bool> allowed = IsAllowed(bundle, variant);
        if (!allowed.ok()) return allowed.status();
        if (*allowed) found.push_back(std::move(variant));
      }
    }
  }
  if (count > 0) return found;
  // A space may have parts that no single step reaches: record them too.
  absl::StatusOr<std::vector<v1::Variant>> all = AllowedVariants(bundle);
  if (!all.ok()) return all.status();
  std::set<std::string> reached;
  for (const v1::Variant& variant : found) reached.insert(VariantText(variant));
  for (v1::Variant& variant : *all) {
    if (!reached.count(VariantText(variant))) found.push_back(std::move(variant));
  }
  return found;
}

std::vector<std::string> VariablesWithoutEffect(const Recording& recording) {
  std::vector<std::string> without;
  for (const v1::Variable& variable : recording.header.variables()) {
    // Variants that differ in this variable alone must show different code or geometry at least once.
    std::map<std::string, std::set<std::string>> looks;
    size_t compared = 0;
    for (const v1::RecordedVariant& record : recording.variants) {
      if (record.has_failure()) continue;
      v1::Variant others = record.variant();
      others.mutable_values()->erase(variable.name());
      std::string look = record.cubin_hash();
      for (const v1::LaunchEvidence& launch : record.evidence().launches()) {
        look += launch.geometry().ShortDebugString();
      }
      std::set<std::string>& group = looks[VariantText(others)];
      compared += !group.empty();
      group.insert(look);
    }
    bool effect = compared == 0;  // never varied alone: nothing can be said against it
    for (const auto& [others, group] : looks) effect = effect || group.size() > 1;
    if (!effect) without.push_back(variable.name());
  }
  return without;
}

}  // namespace pawl
