#include "orchestrator/engine/ahead/foresee.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kernels/space.h"

namespace pawl {
namespace {

constexpr int kForeseen = 4;  // of each outcome: so many are built while a trial is measured
// Proposals that are also foreseen on top of the trial's variant: few are kept, and one patch is built after another.
constexpr int kForeseenOnKept = 2;

}  // namespace

std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  std::vector<v1::ForeseenVariant> foreseen;
  const int own_source = campaign.SourceIdOf(planned.iteration()),
            parents_source = campaign.SourceIdOf(planned.parent());
  std::set<std::pair<int, std::string>> once;  // by source
  const auto variant_of = [&](int iteration) -> std::optional<v1::Variant> {
    if (iteration == planned.iteration()) return planned.variant();
    const v1::Iteration* found = campaign.Find(iteration);
    return found == nullptr ? std::nullopt : std::optional(VariantOf(*found));
  };
  const auto add = [&](const v1::Change& change, int parent) {
    // A worker has the sources of the trial's variant and of its parent.
    const int source = campaign.SourceIdOf(parent);
    const std::optional<v1::Variant> base = variant_of(parent);
    if (!base || (source != own_source && source != parents_source)) return false;
    v1::ForeseenVariant next;
    *next.mutable_variant() = *base;
    next.set_kept(parent == planned.iteration() || source != parents_source);
    next.set_parent(parent);
    *next.mutable_change() = change;
    bool known = false;  // both outcomes may lead to the same variant
    if (!change.has_source()) {
      (*next.mutable_variant()->mutable_values())[change.variable()] = change.to();
      const absl::StatusOr<bool> allowed = IsAllowed(campaign.BundleAt(parent), next.variant());
      if (!allowed.ok() || !*allowed) return false;
      known = !once.insert({source, VariantText(next.variant())}).second;
    }
    if (!known) foreseen.push_back(std::move(next));
    return !known;
  };
  int reverted = 0, kept = 0;
  // Proposals are changes of the best variant, and come before what Pawl would choose.
  const bool from_best = planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && planned.has_parent() &&
                         campaign.PatchBase() == planned.parent();
  for (const bool is_kept : {false, true}) {
    int& count = is_kept ? kept : reverted;
    for (const CampaignState::Proposal& waiting : campaign.proposals()) {
      if (!from_best || count >= (is_kept ? kForeseenOnKept : kForeseen)) break;
      count += add(waiting.proposed.change(), is_kept ? planned.iteration() : planned.parent());
    }
  }
  const SearchMemo::Following& following = campaign.search_memo().following;
  if (following.trial != planned.trial()) return foreseen;
  for (size_t i = 0; i < std::max(following.reverted.size(), following.kept.size()); ++i) {
    for (const bool is_kept : {false, true}) {
      int& count = is_kept ? kept : reverted;
      const std::vector<SearchMemo::Step>& steps = is_kept ? following.kept : following.reverted;
      if (count < kForeseen && i < steps.size()) count += add(steps[i].change, steps[i].parent);
    }
  }
  return foreseen;
}

}  // namespace pawl
