#include "orchestrator/engine/report/situation.h"

#include <optional>
#include <set>
#include <utility>

#include "kernels/variable_values.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/single_change.h"

namespace pawl {
namespace {

constexpr int kNewest = 500;  // iterations, to bound the size of the message

}  // namespace

namespace {

// The best variant, what its evidence shows, and the changes of variables that can be tried from it.
void AddBest(const CampaignState& campaign, const Chooser& chooser, const DecisionTree& tree,
             v1::Situation& situation) {
  const v1::Iteration& best = *campaign.best();
  situation.set_source(campaign.SourceOf(best.number()));
  situation.set_source_path(campaign.bundle().source().path());
  const v1::Bundle& bundle = campaign.BundleAt(best.number());
  *situation.mutable_variables() = bundle.variables();
  *situation.mutable_constraints() = bundle.constraints();
  *situation.mutable_best() = best;
  *situation.mutable_best()->mutable_evidence() = campaign.best_evidence();
  for (v1::Finding& finding : tree.Diagnose(campaign.best_evidence(), campaign.gpu())) {
    *situation.add_findings() = std::move(finding);
  }
  // A proposal changes the best variant. What the engine would try from another one is listed where the best can have
  // it, and after that what else can be tried.
  std::vector<v1::RankedChange> ranking = UntriedChanges(campaign, chooser);
  for (const v1::Variable& variable : bundle.variables()) {
    for (const int32_t value : variable.values()) {
      v1::Change& change = *ranking.emplace_back().mutable_change();
      change.set_variable(variable.name());
      change.set_to(value);
    }
  }
  std::set<std::pair<std::string, int32_t>> listed;
  for (v1::RankedChange& untried : ranking) {
    v1::Change& change = *untried.mutable_change();
    const auto from = best.variant().find(change.variable());
    if (from == best.variant().end() || !listed.insert({change.variable(), change.to()}).second) continue;
    change.set_from(from->second);
    change.clear_from_word();
    std::string why;
    const std::optional<v1::Variant> variant = Changed(campaign, best, change, &why);
    if (!variant || campaign.Tried(*variant, campaign.SourceIdOf(best.number()))) continue;
    untried.set_parent(best.number());
    NameWords(bundle, &change);
    *situation.add_untried() = std::move(untried);
  }
}

}  // namespace

v1::Situation SituationOf(const CampaignState& campaign, const Chooser& chooser, const DecisionTree& tree) {
  v1::Situation situation;
  *situation.mutable_campaign() = campaign.summary();
  if (campaign.best() != nullptr) AddBest(campaign, chooser, tree, situation);
  const size_t judged = campaign.iterations().size();
  for (size_t i = 0; i < judged; ++i) {
    const v1::Iteration& iteration = campaign.iterations()[i];
    if (i + kNewest >= judged || (iteration.verdict() == v1::KEPT && situation.tried_size() < kNewest)) {
      *situation.add_tried() = iteration;
    } else {
      situation.set_tried_left_out(situation.tried_left_out() + 1);
    }
  }
  for (const CampaignState::Proposal& proposal : campaign.proposals()) {
    *situation.add_proposals() = proposal.proposed;
  }
  if (const std::optional<absl::Time> deadline = ProposalDeadline(campaign)) {
    situation.set_waits(true);
    if (*deadline != absl::InfiniteFuture()) SetTime(*deadline, situation.mutable_deadline());
  }
  return situation;
}

std::vector<v1::RankedChange> UntriedChanges(const CampaignState& campaign, const Chooser& chooser) {
  std::vector<v1::RankedChange> untried;
  const std::optional<Choice> choice = chooser.Next(campaign);
  if (!choice) return untried;
  v1::RankedChange& first = untried.emplace_back();
  *first.mutable_change() = choice->change;
  first.set_parent(choice->parent);
  if (choice->score) *first.mutable_score() = *choice->score;
  if (choice->finding) first.set_finding(choice->finding->rule());
  for (const v1::PassedOver& passed : choice->passed_over) {
    if (!passed.has_score()) continue;  // it can't be tried
    v1::RankedChange& ranked = untried.emplace_back();
    *ranked.mutable_change() = passed.change();
    ranked.set_parent(choice->parent);
    *ranked.mutable_score() = passed.score();
  }
  for (v1::RankedChange& ranked : untried) NameWords(campaign.BundleAt(ranked.parent()), ranked.mutable_change());
  return untried;
}

}  // namespace pawl
