#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/revision/revision.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {
namespace {

// By the comparison with the start.
std::vector<v1::RevisedIteration> CorrectedBy(const v1::TotalGain& total,
                                              const std::vector<v1::Iteration>& iterations) {
  const std::string why = total.has_failure() ? total.failure().message() : "it is slower than the start";
  const bool measured = total.speedup_over_start() > 0 && total.multiplied() > 0;
  const double correction = measured ? total.speedup_over_start() / total.multiplied() : 1;
  std::vector<v1::RevisedIteration> all;
  for (const v1::Iteration& iteration : iterations) {
    v1::RevisedIteration revised = Unrevised(iteration);
    const auto& taken_back = total.taken_back();
    const bool reverted = iteration.verdict() == v1::KEPT &&
                          std::find(taken_back.begin(), taken_back.end(), iteration.number()) != taken_back.end();
    if (reverted) {
      revised.set_verdict(v1::REVERTED);
      revised.set_reason(
          absl::StrCat(iteration.reason(), "; taken back: iteration ", total.iteration(), " beside the start: ", why));
    }
    // Products are corrected alike, so that their order stays. What was compared with the start itself is no product.
    // So is the one that was measured now, or the best would change with every total.
    const bool itself = measured && iteration.number() == total.iteration();
    const bool product =
        (itself || IsProduct(iteration)) && iteration.speedup_over_start() != 0 && iteration.leg() == total.leg();
    if (product) {
      revised.set_speedup_over_start(iteration.speedup_over_start() * correction);
      revised.set_speedup_over_baseline(iteration.speedup_over_baseline() * correction);
    }
    if (reverted || (product && correction != 1)) all.push_back(std::move(revised));
  }
  return all;
}

}  // namespace

// From here on the campaign goes by what was measured.
void CampaignState::ApplyTotal(const v1::TrialFinished& finished, int kept_before) {
  if (start_rejected()) return;
  *summary_.mutable_total_gain() = finished.total_gain();
  final_totals_ += !finished.total_gain().interim();
  if (leg_ < summary_.legs_size() && !finished.total_gain().interim()) {
    *summary_.mutable_legs(leg_)->mutable_total() = finished.total_gain();
  }
  kept_since_total_ = std::max(0, kept_since_total_ - kept_before);  // others were kept while it was measured
  const v1::TotalGain& total = finished.total_gain();
  const bool measured = total.speedup_over_start() > 0 && total.multiplied() > 0;
  if (measured) leg_correction_ *= total.speedup_over_start() / total.multiplied();
  std::vector<v1::RevisedIteration> revised(finished.revised().begin(), finished.revised().end());
  if (revised.empty()) revised = CorrectedBy(total, iterations_);  // nothing to revise, or an old event
  for (const v1::RevisedIteration& revision : revised) Revise(revision);
  ElectBest();
}

void CampaignState::Revise(const v1::RevisedIteration& revision) {
  const auto place = places_.find(revision.number());
  if (place == places_.end()) return;
  v1::Iteration& iteration = iterations_[place->second];
  memo_.observations = 0;
  Count(iteration, -1);
  ReviseIteration(revision, &iteration);
  Count(iteration, 1);
  NoteUnsanitized(iteration);
  const bool may_be_end = iteration.expedition() && iteration.comparison() == v1::FASTER && !iteration.has_over_best();
  if (iteration.verdict() != v1::KEPT && !may_be_end) evidence_.erase(iteration.number());
}

std::vector<v1::RevisedIteration> RevisedBy(const v1::TotalGain& total, const std::vector<v1::Iteration>& iterations) {
  std::vector<v1::RevisedIteration> all = CorrectedBy(total, iterations);
  for (v1::RevisedIteration& revised : all) {
    if (!total.has_failure() || revised.number() != total.iteration()) continue;
    revised.set_verdict(v1::REJECTED);  // no step begins from what is wrong
    *revised.mutable_failure() = total.failure();
  }
  const v1::Comparison& beside = total.beside_baseline().interval();
  const auto measured = std::find_if(iterations.begin(), iterations.end(), [&](const v1::Iteration& iteration) {
    return iteration.number() == total.iteration() && iteration.leg() == total.leg();
  });
  if (total.has_failure() || beside.pairs() < 2 || measured == iterations.end()) return all;
  auto place = std::find_if(all.begin(), all.end(),
                            [&](const v1::RevisedIteration& revised) { return revised.number() == total.iteration(); });
  if (place == all.end()) place = all.insert(place, Unrevised(*measured));
  place->set_speedup_over_baseline(std::exp(beside.mean_log_ratio()));
  return all;
}

}  // namespace pawl
