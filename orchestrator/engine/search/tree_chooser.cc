#include "orchestrator/engine/search/tree_chooser.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/variable_values.h"
#include "orchestrator/engine/search/patterns.h"

namespace pawl {
namespace {

// Blocks of the largest launch at the size that is optimised; 0: unknown.
int64_t PlannedBlocks(const CampaignState& campaign, const v1::Variant& variant, int source, const v1::GpuInfo& gpu) {
  const v1::Bundle& bundle = campaign.bundle();
  const std::string& asked = campaign.goal().size();
  for (const v1::Size& size : bundle.sizes()) {
    if (size.name() != (asked.empty() ? bundle.goal().size() : asked)) continue;
    const absl::StatusOr<v1::Plan> plan = campaign.PlanOf(variant, source, size, gpu);
    if (!plan.ok()) return 0;
    int64_t most = 0;
    for (const v1::PlanLaunch& launch : plan->launches()) {
      most = std::max(most, int64_t{launch.grid().x()} * launch.grid().y() * launch.grid().z());
    }
    return most;
  }
  return 0;
}

// A plan takes as long to make as ten changes to rank.
int64_t BlocksOf(const CampaignState& campaign, const v1::Variant& variant, int source, const v1::GpuInfo& gpu) {
  SearchMemo::Places key = PointOf(campaign.BundleOf(source), variant.values());
  key.push_back(static_cast<uint16_t>(source));
  const auto [known, is_new] = campaign.search_memo().blocks.try_emplace(std::move(key));
  if (is_new) known->second = PlannedBlocks(campaign, variant, source, gpu);
  return known->second;
}

const std::vector<v1::Finding>& FindingsOf(const CampaignState& campaign, const DecisionTree& tree, int iteration) {
  static const std::vector<v1::Finding>& none = *new std::vector<v1::Finding>;
  const v1::Evidence* evidence = campaign.EvidenceOf(iteration);
  if (evidence == nullptr) return none;
  SearchMemo& memo = campaign.search_memo();
  if (memo.tree != &tree) {
    memo.findings.clear();
    memo.rules.reset();
  }
  memo.tree = &tree;
  const auto [known, is_new] = memo.findings.try_emplace(iteration);
  if (is_new) known->second = tree.Diagnose(*evidence, campaign.gpu());
  return known->second;
}

// Of the best variant. It changes when another variant is the best.
std::shared_ptr<const RulePrior> RulesOf(const CampaignState& campaign, const DecisionTree& tree,
                                         const RulePriorSettings& settings) {
  const v1::Iteration& best = *campaign.best();
  const std::vector<v1::Finding>& findings = FindingsOf(campaign, tree, best.number());
  const bool known = campaign.EvidenceOf(best.number()) != nullptr;  // it does not change any more
  SearchMemo& memo = campaign.search_memo();
  if (known && memo.rules != nullptr && memo.rules_of == best.number() && memo.rules->settings() == settings) {
    return memo.rules;
  }
  const v1::Bundle& bundle = campaign.BundleAt(best.number());
  auto rules = std::make_shared<const RulePrior>(findings, bundle, PointOf(bundle, best.variant()), campaign.patterns(),
                                                 SmArchitecture(campaign.gpu()), settings);
  memo.rules = known ? rules : nullptr;
  memo.rules_of = best.number();
  return rules;
}

std::string EffectText(const v1::Effect& effect) {
  std::string resource = v1::Resource_Name(effect.resource()).substr(std::string("RESOURCE_").size());
  std::replace(resource.begin(), resource.end(), '_', ' ');
  return absl::StrCat(effect.direction() == v1::DIRECTION_MORE ? "more " : "less ", absl::AsciiStrToLower(resource));
}

std::string ChangeText(const CampaignState& campaign, v1::Change change) {
  NameWords(campaign.BundleAt(campaign.best()->number()), &change);
  return absl::StrCat(change.variable(), " from ", FromText(change), " to ", ToText(change));
}

constexpr size_t kRanksNext = 7;      // changes that are named beside the chosen one
constexpr double kOutside = 0.2;      // share of outcomes that may lie outside of their predicted intervals
constexpr double kQuantile = 1.2816;  // standard deviations within which the others lie, of a normal distribution
constexpr double kAdaptation = 0.1;   // of the intervals' width, for each outcome

// Standard deviations to either end of an interval that holds the outcome 80 times in 100. What variants do is not
// normally distributed, and differently so in each space, so the width follows the campaign's own predictions: it grows
// with every miss and shrinks with every hit, by amounts that cancel where 20 in 100 miss (adaptive conformal
// inference; Gibbs and Candes 2021).
double WidthOf(const CampaignState& campaign) {
  double excess = 0;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (!iteration.has_score() || !campaign.IsMeasured(iteration)) continue;
    const v1::Prediction::Outcome outcome = iteration.prediction().time_outcome();
    if (outcome == v1::Prediction::FAILED) excess += 1 - kOutside;
    if (outcome == v1::Prediction::CAME_TRUE) excess -= kOutside;
  }
  return kQuantile * std::exp(kAdaptation * excess);
}

v1::Prediction PredictionOf(const RankedChange& ranked, double log_best_over_parent, double width) {
  v1::Prediction prediction;
  const double mean = ranked.log_speed.mean + log_best_over_parent;
  prediction.set_low(std::exp(mean - width * ranked.log_speed.sd));
  prediction.set_high(std::exp(mean + width * ranked.log_speed.sd));
  prediction.set_outcome(v1::Prediction::UNCHECKED);
  prediction.set_text(absl::StrFormat("the variant is %.2f to %.2f times as fast as its parent, in 80 of 100 cases",
                                      prediction.low(), prediction.high()));
  if (ranked.served.finding == nullptr) return prediction;
  const v1::Finding& finding = *ranked.served.finding;
  prediction.set_metric(finding.predicts());
  for (const v1::SeenValue& seen : finding.seen()) {
    if (seen.metric() != finding.predicts()) continue;
    prediction.set_direction(absl::StartsWith(seen.operator_(), "<") ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
  }
  const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? "rises"
                      : prediction.direction() == v1::DIRECTION_LESS ? "falls"
                                                                     : "moves";
  prediction.set_text(absl::StrCat(finding.predicts(), " ", moves, ", and ", prediction.text()));
  return prediction;
}

// The last iteration that changed the variable to this value from another parent and was not kept; null: none.
const v1::Iteration* Elsewhere(const CampaignState& campaign, const v1::Change& change) {
  const auto& iterations = campaign.iterations();
  const auto same = std::find_if(iterations.rbegin(), iterations.rend(), [&](const v1::Iteration& iteration) {
    return iteration.verdict() != v1::KEPT && iteration.change().variable() == change.variable() &&
           iteration.change().to() == change.to() && !campaign.IsUntried(iteration.number());
  });
  return same == iterations.rend() ? nullptr : &*same;
}

std::string Why(const CampaignState& campaign, const RankedChange& ranked, const v1::Finding* grid) {
  std::string why;
  if (ranked.parent != campaign.best()->number()) {
    why = absl::StrFormat(
        "an expedition: more is expected of %s, from iteration %d, than of any change of the best "
        "variant (iteration %d)",
        ChangeText(campaign, ranked.change), ranked.parent, campaign.best()->number());
  } else if (ranked.served.finding != nullptr) {
    why = absl::StrFormat("%s: %s gives %s", ranked.served.finding->rule(), ChangeText(campaign, ranked.change),
                          EffectText(ranked.served.effect));
  } else {
    why = absl::StrFormat("no rule asks for a change of which more is expected than of %s",
                          ChangeText(campaign, ranked.change));
  }
  if (ranked.unlocks) {
    absl::StrAppend(&why, "; constraints allow ", ChangeText(campaign, *ranked.unlocks), " only after it");
  }
  if (const v1::Iteration* before = Elsewhere(campaign, ranked.change); before != nullptr) {
    absl::StrAppend(&why, "; it was not kept in iteration ", before->number(), ", with another parent");
  }
  if (grid != nullptr) absl::StrAppend(&why, "; the grid does not fill the GPU, so parallelism comes first");
  return why;
}

void PassOver(const v1::Change& change, std::string reason, const v1::Score* score, Choice* choice) {
  v1::PassedOver& passed = choice->passed_over.emplace_back();
  *passed.mutable_change() = change;
  passed.set_reason(std::move(reason));
  if (score != nullptr) *passed.mutable_score() = *score;
}

std::string ProbableTwin(const RankedChange& ranked) {
  if (ranked.same_code < 0.5 || ranked.twin < 0) return "";
  return absl::StrFormat(": probably the machine code of iteration %d (%.0f %%)", ranked.twin, 100 * ranked.same_code);
}

// The reason for every change of the chosen one's parent that was not chosen, the highest score first.
void PassOverOthers(const CampaignState& campaign, const Ranking& ranking, const RankedChange& chosen,
                    const v1::Finding* grid, Choice* choice) {
  for (const RankedChange& ranked : ranking.changes) {
    if (&ranked == &chosen || ranked.parent != chosen.parent) continue;
    std::string why = ranked.refused;
    if (ranked.examined) {
      why = grid != nullptr && ranked.rate > chosen.rate ? "the grid does not fill the GPU: parallelism comes first"
                                                         : absl::StrCat("ranks lower", ProbableTwin(ranked));
    }
    PassOver(ranked.change, std::move(why), ranked.examined ? &ranked.score : nullptr, choice);
  }
  if (chosen.parent != campaign.best()->number()) return;
  for (const TriedChange& tried : ranking.tried_around) {
    const v1::Iteration* before = campaign.Find(tried.iteration);
    std::string verdict = before == nullptr ? "running" : absl::AsciiStrToLower(v1::Verdict_Name(before->verdict()));
    if (before != nullptr && &campaign.CodeOf(*before) != before) {
      absl::StrAppend(&verdict, ", the machine code of iteration ", campaign.CodeOf(*before).number());
    }
    PassOver(tried.change, absl::StrFormat("already tried: iteration %d, %s", tried.iteration, verdict), nullptr,
             choice);
  }
}

}  // namespace

TreeChooser::TreeChooser(const DecisionTree& tree, const TreeSettings& settings) : tree_(tree), settings_(settings) {}

std::optional<Choice> TreeChooser::Next(const CampaignState& campaign) const {
  const v1::Iteration* best = campaign.best();
  if (best == nullptr) return std::nullopt;
  const v1::GpuInfo& gpu = campaign.gpu();
  const int source = campaign.SourceIdOf(best->number());
  const v1::Bundle& bundle = campaign.BundleOf(source);
  const std::shared_ptr<const RulePrior> shared = RulesOf(campaign, tree_, settings_.rules);
  const RulePrior& rules = *shared;
  const Ranking ranking = RankChanges(campaign, rules, settings_.ranking);

  const v1::Finding* grid = rules.GridTooSmall();
  const int64_t blocks = grid != nullptr ? BlocksOf(campaign, VariantOf(*best), source, gpu) : 0;
  Choice choice;
  const auto first = [&](const v1::Finding* must_serve, bool must_add_blocks) -> const RankedChange* {
    for (const RankedChange& ranked : ranking.changes) {
      if (!ranked.examined) continue;
      const bool serves = ranked.parent == best->number() && ranked.log_speed.mean > 0 && must_serve != nullptr &&
                          Serves(bundle, ranked.change, *must_serve);
      if (must_serve != nullptr && !serves) continue;
      v1::Variant variant = VariantOf(*campaign.Find(ranked.parent));
      (*variant.mutable_values())[ranked.change.variable()] = ranked.change.to();
      const int of = campaign.SourceIdOf(ranked.parent);
      if (must_add_blocks && BlocksOf(campaign, variant, of, gpu) <= blocks) continue;
      choice.variant = std::move(variant);
      return &ranked;
    }
    return nullptr;
  };
  // Changes that add blocks come before those that add warps to the same blocks.
  const RankedChange* chosen = blocks > 0 ? first(grid, true) : nullptr;
  if (chosen == nullptr && grid != nullptr) chosen = first(grid, false);
  if (chosen == nullptr) {
    grid = nullptr;
    chosen = first(nullptr, false);
  }
  if (chosen == nullptr) return std::nullopt;
  choice.change = chosen->change;
  choice.parent = chosen->parent;
  choice.author = "pawl";
  choice.score = chosen->score;
  choice.findings = rules.findings();
  if (chosen->parent != best->number()) choice.findings = FindingsOf(campaign, tree_, chosen->parent);
  if (chosen->served.finding != nullptr) {
    choice.finding = *chosen->served.finding;
    choice.effect = chosen->served.effect;
  }
  const v1::Iteration& parent = *campaign.Find(chosen->parent);
  choice.prediction =
      PredictionOf(*chosen, std::log(campaign.SpeedupOf(*best) / campaign.SpeedupOf(parent)), WidthOf(campaign));
  for (const RankedChange& ranked : ranking.changes) {
    if (ranked.examined && (!choice.most || ranked.score.gain() > choice.most->gain)) {
      choice.most = {ranked.change, ranked.parent, ranked.score.gain()};
    }
  }
  for (const RankedChange& ranked : ranking.changes) {
    if (choice.next.size() == kRanksNext) break;
    if (ranked.examined && &ranked != chosen) choice.next.push_back({ranked.parent, ranked.change});
  }
  choice.why = Why(campaign, *chosen, grid);
  PassOverOthers(campaign, ranking, *chosen, grid, &choice);
  return choice;
}

}  // namespace pawl
