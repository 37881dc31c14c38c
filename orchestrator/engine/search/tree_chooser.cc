#include "orchestrator/engine/search/tree_chooser.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/engine/search/architecture.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

// The GPU that evidence is of, as its worker tells or else by the label of the campaign's device: thresholds may differ
// by GPU.
v1::GpuInfo GpuOf(const CampaignState& campaign) {
  if (!campaign.gpu().name().empty()) return campaign.gpu();
  v1::GpuInfo gpu;
  for (const GpuSpec& known : KnownGpus()) {
    for (const std::string& name : known.names) {
      if (name.size() > gpu.name().size() && absl::StrContains(campaign.summary().device(), name)) gpu.set_name(name);
    }
  }
  return gpu;
}

// Blocks of the largest launch at the size that is optimised; 0: nobody can tell.
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

std::string ChangeText(const v1::Change& change) {
  return absl::StrCat(change.variable(), " from ", change.from(), " to ", change.to());
}

v1::Prediction PredictionOf(const RankedChange& ranked) {
  const v1::Finding& finding = *ranked.opinion.served;
  v1::Prediction prediction;
  prediction.set_metric(finding.predicts());
  for (const v1::SeenValue& seen : finding.seen()) {
    if (seen.metric() != finding.predicts()) continue;
    prediction.set_direction(absl::StartsWith(seen.operator_(), "<") ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
  }
  // What is kept gained at least a quarter of what a rule promises, seldom four times that; and so many times more of a
  // resource does not gain more than so many times.
  const double most = std::exp(4 * ranked.opinion.log_gain);
  prediction.set_low(std::exp(ranked.opinion.log_gain / 4));
  prediction.set_high(
      std::max(prediction.low(), ranked.opinion.ratio > 1 ? std::min(ranked.opinion.ratio, most) : most));
  prediction.set_outcome(v1::Prediction::UNCHECKED);
  const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? "rises"
                      : prediction.direction() == v1::DIRECTION_LESS ? "falls"
                                                                     : "moves";
  prediction.set_text(absl::StrFormat("%s %s, and the variant is %.2f to %.2f times as fast as its parent",
                                      finding.predicts(), moves, prediction.low(), prediction.high()));
  return prediction;
}

// The last iteration that tried to turn the variable to this value from another parent; null: none did.
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
        "expected to be slower than the best variant (iteration %d), but to lead on: %s of iteration %d",
        campaign.best()->number(), ChangeText(ranked.change), ranked.parent);
  } else if (ranked.parent != campaign.best()->number()) {
    why = absl::StrFormat("nothing around the best variant (iteration %d) promises more: %s of iteration %d",
                          campaign.best()->number(), ChangeText(ranked.change), ranked.parent);
  } else if (ranked.opinion.served != nullptr) {
    why = absl::StrFormat("%s: %s gives %s", ranked.opinion.served->rule(), ChangeText(ranked.change),
                          EffectText(ranked.opinion.effect));
  } else if (ranked.unlocks) {
    why = absl::StrFormat("%s makes room for what a rule asks for", ChangeText(ranked.change));
  } else {
    why = absl::StrFormat("no rule asks for more: the model ranks %s first", ChangeText(ranked.change));
  }
  if (ranked.takes_back) absl::StrAppend(&why, "; an earlier change brought that along: does it still pay?");
  if (ranked.unlocks) absl::StrAppend(&why, "; only then ", ChangeText(*ranked.unlocks), " is allowed");
  if (const v1::Iteration* before = Elsewhere(campaign, ranked.change); before != nullptr) {
    absl::StrAppend(&why, "; it did not hold in iteration ", before->number(), ", under another parent");
  }
  if (grid != nullptr) absl::StrAppend(&why, "; the grid does not fill the GPU, so parallelism comes first");
  return why;
}

void PassOver(const v1::Change& change, std::string reason, const v1::Voices* voices, Choice* choice) {
  v1::PassedOver& passed = choice->passed_over.emplace_back();
  *passed.mutable_change() = change;
  passed.set_reason(std::move(reason));
  if (voices != nullptr) *passed.mutable_voices() = *voices;
}

// The reason for every change of the chosen one's parent that was not chosen, the most promising first.
void PassOverOthers(const CampaignState& campaign, const Ranking& ranking, const RankedChange& chosen,
                    const v1::Finding* grid, Choice* choice) {
  const v1::Variant parent = VariantOf(*campaign.Find(chosen.parent));
  for (const RankedChange& ranked : ranking.changes) {
    if (&ranked == &chosen || ranked.parent != chosen.parent) continue;
    std::string why;
    const bool possible = Changed(campaign, parent, ranked.change, &why).has_value();
    if (possible) {
      why = grid != nullptr && SumOf(ranked.voices) > SumOf(chosen.voices)
                ? "the grid does not fill the GPU: parallelism comes first"
                : "ranks lower";
      if (ranked.after) absl::StrAppend(&why, "; first comes ", ChangeText(*ranked.after), ", which undoes the cause");
    }
    PassOver(ranked.change, std::move(why), possible ? &ranked.voices : nullptr, choice);
  }
  if (chosen.parent != campaign.best()->number()) return;
  for (const TriedChange& tried : ranking.tried_around) {
    const v1::Iteration* before = campaign.Find(tried.iteration);
    const std::string verdict =
        before == nullptr ? "under way" : absl::AsciiStrToLower(v1::Verdict_Name(before->verdict()));
    PassOver(tried.change, absl::StrFormat("was tried before: iteration %d, %s", tried.iteration, verdict), nullptr,
             choice);
  }
}

}  // namespace

TreeChooser::TreeChooser(const DecisionTree& tree, const TreeSettings& settings) : tree_(tree), settings_(settings) {}

std::optional<Choice> TreeChooser::Next(const CampaignState& campaign) const {
  const v1::Iteration* best = campaign.best();
  if (best == nullptr) return std::nullopt;
  const v1::GpuInfo gpu = GpuOf(campaign);
  const RuleVoice rules(tree_.Diagnose(campaign.best_evidence(), gpu), RuleWeights(campaign, settings_.rules),
                        settings_.rules,
                        VoiceOf(campaign.patterns(), ArchitectureOf(campaign.gpu(), campaign.summary().device()),
                                campaign.bundle().name()));
  const Ranking ranking = RankChanges(campaign, rules, settings_.ranking);

  const v1::Finding* grid = rules.GridTooSmall();
  const int64_t blocks = grid != nullptr ? BlocksOf(campaign, VariantOf(*best), gpu) : 0;
  Choice choice;
  const auto first = [&](const v1::Finding* must_serve, bool must_add_blocks) -> const RankedChange* {
    for (const RankedChange& ranked : ranking.changes) {
      if (must_serve != nullptr &&
          (ranked.parent != best->number() || !Serves(campaign.bundle(), ranked.change, *must_serve) ||
           ranked.left * rules.Weight(must_serve->rule()) < settings_.worth_forcing)) {
        continue;
      }
      // Another change joins a round for what it promises only; a campaign that is idle may as well try everything.
      if (campaign.open_iterations() > 0 && SumOf(ranked.voices) < settings_.worth_joining) return nullptr;
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
  // Blocks fill a GPU; more warps in as few blocks come after them.
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
  choice.voices = chosen->voices;
  choice.findings = rules.findings();
  if (chosen->parent != best->number()) {
    const v1::Evidence* evidence = campaign.EvidenceOf(chosen->parent);
    choice.findings = evidence == nullptr ? std::vector<v1::Finding>() : tree_.Diagnose(*evidence, gpu);
  }
  if (chosen->opinion.served != nullptr) {
    choice.finding = *chosen->opinion.served;
    choice.effect = chosen->opinion.effect;
    choice.prediction = PredictionOf(*chosen);
  }
  choice.why = Why(campaign, *chosen, grid);
  PassOverOthers(campaign, ranking, *chosen, grid, &choice);
  return choice;
}

}  // namespace pawl
