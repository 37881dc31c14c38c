#include "orchestrator/engine/search/single_change.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/bundle_message.h"
#include "kernels/limits.h"
#include "kernels/read/implementation.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr size_t kMaxSource = 256 << 10;  // bytes, after an edit
constexpr size_t kMaxBases = 20;          // kept variants that a patch may have been made against

size_t MostBytes(const v1::Bundle& bundle) {
  const bool several = !bundle.files().empty() || IsContractAlone(bundle);
  return several ? kMaxSource + kMaxFilesBytes : kMaxSource;
}

}  // namespace

std::string WhyForbidden(const CampaignState& campaign, const v1::Variant& variant, int source) {
  const absl::StatusOr<std::string> forbidding = campaign.Forbidding(variant, source);
  if (!forbidding.ok()) return std::string(forbidding.status().message());
  if (!forbidding->empty()) return absl::StrCat("a constraint forbids it: ", *forbidding);
  return campaign.BeyondLimits(variant, source);
}

std::optional<v1::Variant> Changed(const CampaignState& campaign, const v1::Iteration& parent, const v1::Change& change,
                                   std::string* why) {
  const int source = campaign.SourceIdOf(parent.number());
  const v1::Bundle& bundle = campaign.BundleOf(source);
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
  if (parent.variant().at(variable->name()) == change.to()) {
    *why = absl::StrCat(variable->name(), " is already ", ValueText(*variable, change.to()));
    return std::nullopt;
  }
  v1::Variant variant = VariantOf(parent);
  (*variant.mutable_values())[variable->name()] = change.to();
  *why = WhyForbidden(campaign, variant, source);
  if (!why->empty()) return std::nullopt;
  return variant;
}

namespace {

std::optional<Choice> ProposedEdit(const CampaignState& campaign, const v1::Change& change, Choice choice,
                                   ProposalRefusal* refusal, const PatchedBest* patched_before) {
  const bool known = patched_before != nullptr && patched_before->best == choice.parent;
  const PatchedBest now = known ? *patched_before : Patched(BasesOf(campaign), change.source().patch());
  if (!now.patched.ok()) {
    refusal->why = std::string(now.patched.status().message());
    return std::nullopt;
  }
  choice.variant = now.patched->variant;
  choice.patched_source = now.patched->text;
  std::string& why = refusal->why;
  if (choice.patched_source == campaign.SourceOf(choice.parent)) why = "the patch changes nothing";
  if (choice.patched_source.empty()) why = "the patch removes the whole source";
  if (const size_t most = MostBytes(campaign.bundle()); choice.patched_source.size() > most) {
    why = absl::StrCat("the patched source is larger than ", most, " bytes");
  }
  if (!why.empty()) return std::nullopt;
  const int alike = campaign.FindAlike(now, choice.variant);
  if (alike >= 0 && alike == choice.parent) why = "the patch changes nothing but comments and blanks";
  if (alike >= 0 && why.empty()) refusal->tried_before = alike;
  if (alike >= 0) return std::nullopt;
  return choice;
}

}  // namespace

PatchBases BasesOf(const CampaignState& campaign) {
  PatchBases bases;
  bases.bundle = campaign.shared_bundle();
  bases.own_source = campaign.OwnSource();
  std::set<std::pair<int, std::string>> seen;  // source and variant
  const auto add = [&](const v1::Iteration& iteration) {
    const v1::Variant variant = VariantOf(iteration);
    if (bases.states.size() >= kMaxBases) return;
    if (!seen.insert({campaign.SourceIdOf(iteration.number()), VariantText(variant)}).second) return;
    bases.states.push_back({iteration.number(), {campaign.SourceOf(iteration.number()), variant}});
  };
  if (campaign.awaits_start()) bases.states.push_back({PatchedBest::kContract, {}});
  if (campaign.best() == nullptr) return bases;
  add(*campaign.best());
  const auto& iterations = campaign.iterations();
  for (auto each = iterations.rbegin(); each != iterations.rend(); ++each) {
    if (each->verdict() == v1::KEPT) add(*each);
  }
  return bases;
}

namespace {

absl::StatusOr<ImplementationState> PatchedOrRebased(const PatchBases& bases, const std::string& patch) {
  if (bases.states.empty()) return absl::FailedPreconditionError("no variant was kept yet");
  const auto& [best, now] = bases.states[0];
  absl::StatusOr<ImplementationState> patched = PatchImplementation(*bases.bundle, now, patch);
  if (patched.ok()) return patched;
  std::string conflict;
  for (size_t i = 1; i < bases.states.size(); ++i) {
    const auto& [number, earlier] = bases.states[i];
    absl::StatusOr<ImplementationState> rebased = RebaseImplementation(*bases.bundle, earlier, now, patch);
    if (rebased.ok()) return rebased;
    if (conflict.empty() && absl::IsAborted(rebased.status())) {
      conflict = absl::StrCat("the patch fits iteration ", number, ", and the best, iteration ", best,
                              ", differs in lines that it touches: ", rebased.status().message());
    }
  }
  if (!conflict.empty()) return absl::InvalidArgumentError(conflict);
  return patched;
}

}  // namespace

PatchedBest Patched(const PatchBases& bases, const std::string& patch) {
  PatchedBest best;
  best.best = bases.states.empty() ? PatchedBest::kContract : bases.states[0].first;
  best.patched = PatchedOrRebased(bases, patch);
  if (!best.patched.ok()) return best;
  best.normalized = NormalizedHash(*bases.bundle, best.patched->text);
  best.own_normalized = NormalizedHash(*bases.bundle, bases.own_source);
  return best;
}

std::optional<Choice> Proposed(const CampaignState& campaign, const v1::Change& change, ProposalRefusal* refusal,
                               const PatchedBest* patched_before) {
  *refusal = ProposalRefusal();
  const v1::Iteration* best = campaign.best();
  if (best == nullptr && !(campaign.awaits_start() && change.has_source())) {
    refusal->why = campaign.awaits_start() ? "there is no device code yet: propose a patch that adds it"
                                           : "no variant was kept yet";
    return std::nullopt;
  }
  Choice choice;
  choice.change = change;
  choice.parent = campaign.PatchBase();
  if (change.kind_case() == v1::Change::kSource) {
    return ProposedEdit(campaign, change, std::move(choice), refusal, patched_before);
  }
  std::optional<v1::Variant> variant = Changed(campaign, *best, change, &refusal->why);
  if (!variant) return std::nullopt;
  if (campaign.Tried(*variant, campaign.SourceIdOf(best->number()))) {
    refusal->tried_before = campaign.FindSame(campaign.SourceIdOf(best->number()), *variant);
    return std::nullopt;
  }
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
