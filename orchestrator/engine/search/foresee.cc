#include "orchestrator/engine/search/foresee.h"

#include "kernels/space.h"

namespace pawl {
namespace {

constexpr int kForeseen = 4;  // of each outcome: so many are built while a trial is measured
// Proposals that are also foreseen on top of the trial's variant: few are kept, and one patch is built after another.
constexpr int kForeseenOnKept = 2;

}  // namespace

std::vector<v1::ForeseenVariant> Foresee(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  std::vector<v1::ForeseenVariant> foreseen;
  if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION || !planned.has_parent()) return foreseen;
  int reverted = 0, kept = 0;
  const auto add = [&](const v1::Variant& base, int parent, const v1::Change& change, bool is_kept, int& count) {
    v1::ForeseenVariant next;
    *next.mutable_variant() = base;
    (*next.mutable_variant()->mutable_values())[change.variable()] = change.to();
    next.set_kept(is_kept);
    next.set_parent(parent);
    *next.mutable_change() = change;
    const v1::Bundle& bundle = campaign.BundleAt(is_kept ? planned.iteration() : planned.parent());
    const absl::StatusOr<bool> allowed = IsAllowed(bundle, next.variant());
    if (!allowed.ok() || !*allowed) return;
    foreseen.push_back(std::move(next));
    ++count;
  };
  const auto add_edit = [&](const v1::Change& change, bool is_kept, int& count) {
    v1::ForeseenVariant next;
    *next.mutable_variant() = is_kept ? planned.variant() : VariantOf(*campaign.Find(planned.parent()));
    next.set_kept(is_kept);
    next.set_parent(is_kept ? planned.iteration() : planned.parent());
    *next.mutable_change() = change;
    foreseen.push_back(std::move(next));
    ++count;
  };
  // Proposals are changes of the best variant, and come before what Pawl would choose.
  const bool from_best = campaign.PatchBase() == planned.parent();
  for (const bool is_kept : {false, true}) {
    int& count = is_kept ? kept : reverted;
    for (const CampaignState::Proposal& waiting : campaign.proposals()) {
      if (!from_best || count >= (is_kept ? kForeseenOnKept : kForeseen)) break;
      const v1::Change& change = waiting.proposed.change();
      if (change.has_source()) {
        add_edit(change, is_kept, count);
      } else if (is_kept) {
        add(planned.variant(), planned.iteration(), change, true, count);
      } else {
        add(VariantOf(*campaign.Find(planned.parent())), planned.parent(), change, false, count);
      }
    }
  }
  for (const SearchMemo::RanksNext& next : campaign.search_memo().ranks_next) {
    const v1::Iteration* parent = campaign.Find(next.parent);
    // A worker has the sources of the trial's variant and of its parent.
    const bool has_source =
        parent != nullptr && campaign.SourceIdOf(next.parent) == campaign.SourceIdOf(planned.parent());
    if (reverted < kForeseen && has_source) add(VariantOf(*parent), next.parent, next.change, false, reverted);
    const bool same = next.parent != planned.parent() || next.change.variable() == planned.change().variable();
    if (kept < kForeseen && !same) add(planned.variant(), planned.iteration(), next.change, true, kept);
  }
  return foreseen;
}

}  // namespace pawl
