#include "bench/measured_campaign.h"

#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/verdict/verdict.h"

namespace pawl {
namespace {

// There is nothing left to try where a sample was taken.
constexpr int kPassedOverInARow = 50;
constexpr double kNoLeastGain = 1e-300;  // what searches find is counted, not when they would stop

}  // namespace

void RunMeasuredCampaign(
    const MeasuredSpace& space, const MeasuredSpace::Entry& start, const Chooser& chooser, int evaluations,
    uint64_t seed, const std::vector<v1::Pattern>& patterns,
    const std::function<bool(const CampaignState& campaign, const v1::Iteration& iteration)>& judged,
    const std::function<void(const CampaignState& campaign, const v1::Event& event)>& decided) {
  v1::Bundle bundle = space.bundle;
  for (v1::Variable& variable : *bundle.mutable_variables()) {
    variable.set_start(start.variant.values().at(variable.name()));
  }
  const std::string name = absl::StrCat("campaigns/", seed + 1);
  CampaignState campaign(name, bundle);
  SeededRandom random(name, 0);
  v1::Event submitted;
  submitted.mutable_submitted()->mutable_spec()->mutable_goal()->set_speedup(INFINITY);
  submitted.mutable_submitted()->mutable_spec()->mutable_budget()->set_least_gain(kNoLeastGain);
  *submitted.mutable_submitted()->mutable_patterns() = {patterns.begin(), patterns.end()};
  campaign.Apply(submitted);
  int evaluated = 0, passed_over = 0;
  // The end of an expedition counts when it has been compared with the best variant.
  while (campaign.UncomparedEnd() != nullptr || (evaluated < evaluations && passed_over < kPassedOverInARow)) {
    const std::optional<v1::Event> next = Decide(campaign, chooser, absl::UnixEpoch());
    if (!next) break;
    if (decided) decided(campaign, *next);
    campaign.Apply(*next);
    if (!next->has_planned()) break;
    const v1::TrialPlanned& planned = next->planned();
    v1::Event leased;
    leased.mutable_leased()->set_trial(planned.trial());
    leased.mutable_leased()->set_attempt(1);
    leased.mutable_leased()->set_device(space.device);
    campaign.Apply(leased);
    const v1::Iteration* parent = planned.has_parent() ? campaign.Find(planned.parent()) : nullptr;
    const MeasuredSpace::Entry* candidate = space.Find(planned.variant().values());
    v1::Event finished;
    v1::TrialFinished& f = *finished.mutable_finished();
    f.set_trial(planned.trial());
    if (candidate == nullptr) {
      f.mutable_result()->set_passed_over("not recorded");
    } else {
      *f.mutable_result() =
          space.Measure(*candidate, parent ? space.Find(parent->variant()) : nullptr, planned.noise(), random);
    }
    if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      *f.mutable_total_gain() = JudgeTotal(campaign, planned, f.result());
      campaign.Apply(finished);
      continue;
    }
    if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
      *f.add_revised() = JudgeEnd(campaign, planned, f.result());
      campaign.Apply(finished);
      if (!judged(campaign, *campaign.Find(planned.iteration()))) return;
      continue;
    }
    *f.mutable_iteration() = Judge(campaign, planned, f.result());
    campaign.Apply(finished);
    passed_over = candidate == nullptr ? passed_over + 1 : 0;
    if (candidate == nullptr) continue;  // of a space of which a sample was measured
    ++evaluated;
    if (campaign.UncomparedEnd() != nullptr) continue;
    if (!judged(campaign, f.iteration())) return;
  }
}

}  // namespace pawl
