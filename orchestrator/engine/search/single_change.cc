#include "orchestrator/engine/search/single_change.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/implementation.h"
#include "kernels/limits.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr size_t kMaxSource = 256 << 10;  // bytes, after an edit

size_t MostBytes(const v1::Bundle& bundle) { return bundle.files().empty() ? kMaxSource : kMaxSource + kMaxFilesBytes; }

}  // namespace

std::optional<v1::Variant> Changed(const CampaignState& campaign, const v1::Variant& parent, const v1::Change& change,
                                   std::string* why) {
  const v1::Bundle& bundle = campaign.bundle();
  const auto variable = std::find_if(bundle.variables().begin(), bundle.variables().end(),
                                     [&](const v1::Variable& v) { return v.name() == change.variable(); });
  if (change.kind_case() != v1::Change::kVariable || variable == bundle.variables().end()) {
    *why = absl::StrCat(bundle.name(), " has no variable \"", change.variable(), "\"");
    return std::nullopt;
  }
  const auto& values = variable->values();
  if (std::find(values.begin(), values.end(), change.to()) == values.end()) {
    *why = absl::StrCat(variable->name(), " has no value ", change.to(), "; its values are ", ValuesText(*variable));
    return std::nullopt;
  }
  if (parent.values().at(variable->name()) == change.to()) {
    *why = absl::StrCat(variable->name(), " is already ", ValueText(*variable, change.to()));
    return std::nullopt;
  }
  v1::Variant variant = parent;
  (*variant.mutable_values())[variable->name()] = change.to();
  const absl::StatusOr<std::string> forbidding = campaign.Forbidding(variant);
  if (!forbidding.ok() || !forbidding->empty()) {
    *why = forbidding.ok() ? absl::StrCat("a constraint forbids it: ", *forbidding)
                           : std::string(forbidding.status().message());
    return std::nullopt;
  }
  if (const std::string& beyond = campaign.BeyondLimits(variant); !beyond.empty()) {
    *why = beyond;
    return std::nullopt;
  }
  return variant;
}

std::optional<Choice> Proposed(const CampaignState& campaign, const v1::Change& change, std::string* why,
                               const PatchedSource* patched_before) {
  why->clear();
  const v1::Iteration* best = campaign.best();
  if (best == nullptr) {
    *why = "no variant was kept yet";
    return std::nullopt;
  }
  Choice choice;
  choice.change = change;
  choice.parent = best->number();
  if (change.kind_case() == v1::Change::kSource) {
    const std::string& source = campaign.SourceOf(best->number());
    const bool known_result = patched_before != nullptr && patched_before->source == source;
    absl::StatusOr<std::string> patched = known_result
                                              ? patched_before->patched
                                              : PatchImplementation(campaign.bundle(), source, change.source().patch());
    if (!patched.ok()) {
      *why = std::string(patched.status().message());
      return std::nullopt;
    }
    choice.variant = VariantOf(*best);
    choice.patched_source = *std::move(patched);
    if (choice.patched_source == source) *why = "the patch changes nothing";
    if (choice.patched_source.empty()) *why = "the patch removes the whole source";
    if (choice.patched_source.size() > MostBytes(campaign.bundle())) {
      *why = absl::StrCat("the patched source is larger than ", kMaxSource, " bytes");
    }
    if (!why->empty()) return std::nullopt;
    const int known = campaign.FindSource(choice.patched_source);
    if (known >= 0 && campaign.Tried(choice.variant, known)) return std::nullopt;
    return choice;
  }
  std::optional<v1::Variant> variant = Changed(campaign, VariantOf(*best), change, why);
  if (!variant || campaign.Tried(*variant, campaign.SourceIdOf(best->number()))) return std::nullopt;
  choice.change.set_from(best->variant().at(change.variable()));
  choice.variant = *std::move(variant);
  return choice;
}

int Differences(const v1::Variant& a, const v1::Variant& b) {
  int differences = 0;
  for (const auto& [name, value] : a.values()) {
    const auto other = b.values().find(name);
    differences += other == b.values().end() || other->second != value;
  }
  for (const auto& [name, value] : b.values()) differences += !a.values().contains(name);
  return differences;
}

}  // namespace pawl
