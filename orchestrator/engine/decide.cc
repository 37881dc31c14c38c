#include "orchestrator/engine/decide.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/space.h"

namespace pawl {
namespace {

v1::Event Ended(v1::CampaignState state, v1::StopReason reason, const std::string& message) {
  v1::Event event;
  event.mutable_ended()->set_state(state);
  event.mutable_ended()->set_reason(reason);
  event.mutable_ended()->set_message(message);
  return event;
}

std::optional<v1::Event> Stop(const CampaignState& campaign, absl::Time now) {
  const v1::Campaign& summary = campaign.summary();
  const v1::Budget& budget = summary.spec().budget();
  auto finished = [](v1::StopReason reason, const std::string& message) {
    return Ended(v1::FINISHED, reason, message);
  };
  const double goal = summary.spec().goal().speedup();
  if (summary.speedup_over_baseline() >= goal) {
    return finished(v1::STOP_REASON_GOAL,
                    absl::StrFormat("goal reached: %.2fx of %s, %gx was asked for", summary.speedup_over_baseline(),
                                    summary.baseline_us() > 0 ? "the baseline" : "the start", goal));
  }
  if (budget.iterations() > 0 && summary.iterations() > budget.iterations()) {
    return finished(v1::STOP_REASON_ITERATIONS, absl::StrCat("all ", budget.iterations(), " iterations are used up"));
  }
  if (budget.minutes() > 0 && campaign.Running(now) >= absl::Minutes(budget.minutes())) {
    return finished(v1::STOP_REASON_MINUTES, absl::StrFormat("all %g minutes are used up", budget.minutes()));
  }
  if (budget.dollars() > 0 && summary.dollars() >= budget.dollars()) {
    return finished(v1::STOP_REASON_DOLLARS, absl::StrFormat("all %.2f dollars are used up", budget.dollars()));
  }
  if (budget.reverts_in_a_row() > 0 && campaign.reverts_in_a_row() >= budget.reverts_in_a_row()) {
    return finished(v1::STOP_REASON_REVERTS,
                    absl::StrCat("the last ", campaign.reverts_in_a_row(), " changes were taken back"));
  }
  return std::nullopt;
}

// The oldest proposal that can still be tried from the best variant.
std::optional<Choice> FromProposals(const CampaignState& campaign) {
  const v1::Iteration& best = *campaign.best();
  for (const CampaignState::Proposal& proposal : campaign.proposals()) {
    std::string why;
    std::optional<v1::Variant> variant = Changed(campaign, VariantOf(best), proposal.proposed.change(), &why);
    if (!variant || campaign.Tried(*variant)) continue;
    Choice choice;
    choice.change = proposal.proposed.change();
    choice.change.set_from(best.variant().at(choice.change.variable()));
    choice.parent = best.number();
    choice.variant = *std::move(variant);
    choice.author = proposal.proposed.author();
    choice.why = proposal.proposed.why();
    return choice;
  }
  return std::nullopt;
}

v1::Event Planned(const CampaignState& campaign) {
  v1::Event event;
  event.mutable_planned()->set_trial(campaign.next_trial());
  event.mutable_planned()->set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  event.mutable_planned()->set_iteration(campaign.next_iteration());
  return event;
}

}  // namespace

std::optional<v1::Event> Decide(const CampaignState& campaign, const Chooser& chooser, absl::Time now) {
  if (campaign.ended() || campaign.summary().state() == v1::PAUSED) return std::nullopt;
  const bool under_way =
      std::any_of(campaign.open_trials().begin(), campaign.open_trials().end(),
                  [](const auto& open) { return open.second.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION; });
  if (under_way) return std::nullopt;
  if (campaign.iterations().empty()) {
    v1::Event event = Planned(campaign);
    *event.mutable_planned()->mutable_variant() = StartVariant(campaign.bundle());
    event.mutable_planned()->set_author("pawl");
    event.mutable_planned()->set_why("the start variant comes first");
    return event;
  }
  if (campaign.best() == nullptr) {
    return Ended(v1::FAILED, v1::STOP_REASON_START,
                 absl::StrCat("the start variant did not pass: ", campaign.iterations()[0].reason()));
  }
  if (std::optional<v1::Event> stop = Stop(campaign, now)) return stop;
  std::optional<Choice> choice = FromProposals(campaign);
  if (!choice) choice = chooser.Next(campaign);
  if (!choice) {
    return Ended(v1::FINISHED, v1::STOP_REASON_SPACE, "no change is left to try around the best variant");
  }
  const v1::Iteration* parent = campaign.Find(choice->parent);
  if (parent == nullptr || parent->verdict() != v1::KEPT || Differences(VariantOf(*parent), choice->variant) != 1) {
    return Ended(v1::FAILED, v1::STOP_REASON_UNSPECIFIED,
                 absl::StrCat("refused: iteration ", campaign.next_iteration(),
                              " would not differ in exactly one variable from a kept parent"));
  }
  v1::Event event = Planned(campaign);
  v1::TrialPlanned& planned = *event.mutable_planned();
  planned.set_parent(choice->parent);
  *planned.mutable_variant() = std::move(choice->variant);
  *planned.mutable_change() = std::move(choice->change);
  if (choice->finding) *planned.mutable_finding() = *std::move(choice->finding);
  if (choice->prediction) *planned.mutable_prediction() = *std::move(choice->prediction);
  for (v1::PassedOver& passed : choice->passed_over) *planned.add_passed_over() = std::move(passed);
  planned.set_author(choice->author);
  planned.set_why(choice->why);
  return event;
}

}  // namespace pawl
