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
#include "orchestrator/engine/search/single_change.h"

namespace pawl {
namespace {

// Blocks of the largest launch at the size that is optimised; 0: unknown.
int64_t BlocksOf(const CampaignState& campaign, const v1::Variant& variant, const v1::GpuInfo& gpu) {
  const v1::Bundle& bundle = campaign.bundle();
  const std::string& asked = campaign.summary().spec().goal().size();
  for (const v1::Size& size : bundle.sizes()) {
    if (size.name() != (asked.empty() ? bundle.goal().size() : asked)) continue;
    const absl::StatusOr<v1::Plan> plan = campaign.PlanOf(variant, size, gpu);
    if (!plan.ok()) return 0;
    int64_t most = 0;
    for (const v1::PlanLaunch& launch : plan->launches()) {
      most = std::max(most, int64_t{launch.grid().x()} * launch.grid().y() * launch.grid().z());
    }
    return most;
  }
  return 0;
}

std::string EffectText(const v1::Effect& effect) {
  std::string resource = v1::Resource_Name(effect.resource()).substr(std::string("RESOURCE_").size());
  std::replace(resource.begin(), resource.end(), '_', ' ');
  return absl::StrCat(effect.direction() == v1::DIRECTION_MORE ? "more " : "less ", absl::AsciiStrToLower(resource));
}

std::string ChangeText(const CampaignState& campaign, v1::Change change) {
  NameWords(campaign.bundle(), &change);
  return absl::StrCat(change.variable(), " from ", FromText(change), " to ", ToText(change));
}

v1::Prediction PredictionOf(const RankedChange& ranked) {
  const v1::Finding& finding = *ranked.rule.served;
  v1::Prediction prediction;
  prediction.set_metric(finding.predicts());
  for (const v1::SeenValue& seen : finding.seen()) {
    if (seen.metric() != finding.predicts()) continue;
    prediction.set_direction(absl::StartsWith(seen.operator_(), "<") ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
  }
  // Kept changes gained at least a quarter of the log speedup that a rule predicts, and seldom more than four times it.
  // A resource that grows by some factor does not gain more than that factor.
  const double most = std::exp(4 * ranked.rule.log_gain);
  prediction.set_low(std::exp(ranked.rule.log_gain / 4));
  prediction.set_high(std::max(prediction.low(), ranked.rule.ratio > 1 ? std::min(ranked.rule.ratio, most) : most));
  prediction.set_outcome(v1::Prediction::UNCHECKED);
  const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? "rises"
                      : prediction.direction() == v1::DIRECTION_LESS ? "falls"
                                                                     : "moves";
  prediction.set_text(absl::StrFormat("%s %s, and the variant is %.2f to %.2f times as fast as its parent",
                                      finding.predicts(), moves, prediction.low(), prediction.high()));
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
  if (ranked.detour) {
    why = absl::StrFormat(
        "a detour, expected to be slower than the best variant (iteration %d) but to allow faster ones: %s, from "
        "iteration "
        "%d",
        campaign.best()->number(), ChangeText(campaign, ranked.change), ranked.parent);
  } else if (ranked.parent != campaign.best()->number()) {
    why = absl::StrFormat("no change of the best variant (iteration %d) scores higher: %s, from iteration %d",
                          campaign.best()->number(), ChangeText(campaign, ranked.change), ranked.parent);
  } else if (ranked.rule.served != nullptr) {
    why = absl::StrFormat("%s: %s gives %s", ranked.rule.served->rule(), ChangeText(campaign, ranked.change),
                          EffectText(ranked.rule.effect));
  } else if (ranked.unlocks) {
    why = absl::StrFormat("%s allows a change that a rule asks for", ChangeText(campaign, ranked.change));
  } else {
    why = absl::StrFormat("no rule scores higher: the model ranks %s first", ChangeText(campaign, ranked.change));
  }
  if (ranked.takes_back)
    absl::StrAppend(&why,
                    "; it undoes the earlier change that caused the finding, to test whether that change still pays");
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

// The reason for every change of the chosen one's parent that was not chosen, the highest score first.
void PassOverOthers(const CampaignState& campaign, const Ranking& ranking, const RankedChange& chosen,
                    const v1::Finding* grid, Choice* choice) {
  const v1::Variant parent = VariantOf(*campaign.Find(chosen.parent));
  for (const RankedChange& ranked : ranking.changes) {
    if (&ranked == &chosen || ranked.parent != chosen.parent) continue;
    std::string why;
    const bool possible = Changed(campaign, parent, ranked.change, &why).has_value();
    if (possible) {
      why = grid != nullptr && SumOf(ranked.score) > SumOf(chosen.score)
                ? "the grid does not fill the GPU: parallelism comes first"
                : "ranks lower";
      if (ranked.after) {
        absl::StrAppend(&why, "; down-weighted until ", ChangeText(campaign, *ranked.after),
                        " is tested, which undoes the cause");
      }
    }
    PassOver(ranked.change, std::move(why), possible ? &ranked.score : nullptr, choice);
  }
  if (chosen.parent != campaign.best()->number()) return;
  for (const TriedChange& tried : ranking.tried_around) {
    const v1::Iteration* before = campaign.Find(tried.iteration);
    const std::string verdict =
        before == nullptr ? "running" : absl::AsciiStrToLower(v1::Verdict_Name(before->verdict()));
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
  const RuleScore rules(tree_.Diagnose(campaign.best_evidence(), gpu), RuleWeights(campaign, settings_.rules),
                        settings_.rules,
                        PatternScoreOf(campaign.patterns(), SmArchitecture(gpu), campaign.bundle().name()));
  const Ranking ranking = RankChanges(campaign, rules, settings_.ranking);

  const v1::Finding* grid = rules.GridTooSmall();
  const int64_t blocks = grid != nullptr ? BlocksOf(campaign, VariantOf(*best), gpu) : 0;
  Choice choice;
  const auto first = [&](const v1::Finding* must_serve, bool must_add_blocks) -> const RankedChange* {
    for (const RankedChange& ranked : ranking.changes) {
      if (must_serve != nullptr &&
          (ranked.parent != best->number() || !Serves(campaign.bundle(), ranked.change, *must_serve) ||
           ranked.discount * rules.Weight(must_serve->rule()) < settings_.min_discount)) {
        continue;
      }
      // A change joins a round only if it scores high enough; an idle campaign tries any change.
      if (campaign.open_iterations() > 0 && SumOf(ranked.score) < settings_.min_joining_score) return nullptr;
      std::string why;
      std::optional<v1::Variant> variant =
          Changed(campaign, VariantOf(*campaign.Find(ranked.parent)), ranked.change, &why);
      if (!variant) continue;
      if (must_add_blocks && BlocksOf(campaign, *variant, gpu) <= blocks) continue;
      choice.variant = *std::move(variant);
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
  if (chosen->parent != best->number()) {
    const v1::Evidence* evidence = campaign.EvidenceOf(chosen->parent);
    choice.findings = evidence == nullptr ? std::vector<v1::Finding>() : tree_.Diagnose(*evidence, gpu);
  }
  if (chosen->rule.served != nullptr) {
    choice.finding = *chosen->rule.served;
    choice.effect = chosen->rule.effect;
    choice.prediction = PredictionOf(*chosen);
  }
  choice.why = Why(campaign, *chosen, grid);
  PassOverOthers(campaign, ranking, *chosen, grid, &choice);
  return choice;
}

}  // namespace pawl
