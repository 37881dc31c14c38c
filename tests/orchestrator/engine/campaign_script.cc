#include "tests/orchestrator/engine/campaign_script.h"

#include <gtest/gtest.h>

#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/verdict/sanitized.h"
#include "orchestrator/engine/verdict/seat.h"
#include "orchestrator/engine/verdict/verdict.h"

namespace pawl {

CampaignScript::CampaignScript(const v1::CampaignSpec& spec, const v1::Bundle& bundle) : state_("campaigns/7", bundle) {
  v1::Event event;
  v1::CampaignSubmitted& submitted = *event.mutable_submitted();
  *submitted.mutable_spec() = spec;
  if (!spec.has_goal()) *submitted.mutable_spec()->mutable_goal() = bundle.goal();
  submitted.set_bundle(bundle.name());
  submitted.set_bundle_hash("the bundle's hash");
  submitted.set_space_hash("the space's hash");
  Apply(event);
}

void CampaignScript::Apply(v1::Event event) {
  event.set_campaign("campaigns/7");
  event.set_sequence(static_cast<int64_t>(events_.size()) + 1);
  SetTime(now_, event.mutable_time());
  state_.Apply(event);
  events_.push_back(std::move(event));
}

std::optional<v1::Event> CampaignScript::Decide(const Chooser& chooser, int slots) {
  std::optional<v1::Event> event = pawl::Decide(state_, chooser, now_, ProfileSet::Default(), slots);
  if (event) Apply(*event);
  return event;
}

void CampaignScript::Lease(int trial, int attempt, double price_per_hour) {
  v1::Event event;
  event.mutable_leased()->set_trial(trial);
  event.mutable_leased()->set_attempt(attempt);
  event.mutable_leased()->set_worker("workers/a");
  event.mutable_leased()->set_device("NVIDIA H200");
  event.mutable_leased()->set_price_per_hour(price_per_hour);
  Apply(event);
}

void CampaignScript::Lose(int trial, v1::LeaseLost::Reason reason) {
  v1::Event event;
  event.mutable_lost()->set_trial(trial);
  event.mutable_lost()->set_attempt(state_.open_trials().at(trial).attempt);
  event.mutable_lost()->set_worker("workers/a");
  event.mutable_lost()->set_reason(reason);
  Apply(event);
}

v1::Iteration CampaignScript::Finish(int trial, const v1::TrialResult& result) {
  v1::Event event;
  v1::TrialFinished& finished = *event.mutable_finished();
  finished.set_trial(trial);
  *finished.mutable_result() = result;
  const v1::TrialPlanned planned = state_.open_trials().at(trial).planned;
  if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
    *finished.add_revised() = JudgeEnd(state_, planned, result);
    Apply(event);
    return *state_.Find(planned.iteration());
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
    for (v1::RevisedIteration& revised : JudgeSanitized(state_, planned, result)) {
      *finished.add_revised() = std::move(revised);
    }
    Apply(event);
    return *state_.Find(planned.iteration());
  }
  *finished.mutable_iteration() = Judge(state_, planned, result);
  for (const v1::RevisedIteration& revised :
       RevisedBySeat(state_, finished.iteration(), planned.noise(), Gates::Default())) {
    *finished.add_revised() = revised;
  }
  Apply(event);
  return finished.iteration();
}

v1::Iteration CampaignScript::Run(const v1::TrialResult& result) {
  std::optional<v1::Event> planned = Decide();
  while (planned && planned->has_dropped()) planned = Decide();
  if (!planned || !planned->has_planned()) {
    ADD_FAILURE() << "no iteration is planned: " << (planned ? planned->ShortDebugString() : "nothing happens");
    return v1::Iteration();
  }
  Lease(planned->planned().trial());
  return Finish(planned->planned().trial(), result);
}

v1::TotalGain CampaignScript::FinishTotal(const v1::TrialResult& result) {
  for (const auto& [trial, open] : state_.open_trials()) {
    if (open.planned.purpose() != v1::TRIAL_PURPOSE_TOTAL) continue;
    v1::Event event;
    event.mutable_finished()->set_trial(trial);
    *event.mutable_finished()->mutable_result() = result;
    pawl::FinishTotal(state_, open.planned, result, event.mutable_finished());
    Lease(trial);
    Apply(event);
    return event.finished().total_gain();
  }
  ADD_FAILURE() << "the total is not to be measured";
  return v1::TotalGain();
}

void CampaignScript::PlanVerification(int iteration) {
  v1::Event event;
  v1::TrialPlanned& planned = *event.mutable_planned();
  planned.set_trial(state_.next_trial());
  planned.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  planned.set_iteration(iteration);
  *planned.mutable_variant() = VariantOf(*state_.Find(iteration));
  Apply(event);
}

void CampaignScript::FinishVerification(const v1::TrialResult& result) {
  v1::Event event;
  v1::TrialFinished& finished = *event.mutable_finished();
  for (const auto& [trial, open] : state_.open_trials()) {
    if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) finished.set_trial(trial);
  }
  *finished.mutable_result() = result;
  finished.mutable_verification()->set_agrees(true);
  Apply(event);
}

void CampaignScript::Propose(const std::string& variable, int to, const std::string& author) {
  v1::Event event;
  event.mutable_proposed()->set_author(author);
  event.mutable_proposed()->mutable_change()->set_variable(variable);
  event.mutable_proposed()->mutable_change()->set_to(to);
  event.mutable_proposed()->set_why("a hunch");
  Apply(event);
}

void CampaignScript::ProposePatch(const std::string& name, const std::string& patch, const std::string& author) {
  v1::Event event;
  event.mutable_proposed()->set_author(author);
  event.mutable_proposed()->mutable_change()->mutable_source()->set_name(name);
  event.mutable_proposed()->mutable_change()->mutable_source()->set_patch(patch);
  Apply(event);
}

void CampaignScript::Pause(const std::string& reason) {
  v1::Event event;
  event.mutable_paused()->set_author("ann");
  event.mutable_paused()->set_reason(reason);
  Apply(event);
}

void CampaignScript::Resume() {
  v1::Event event;
  event.mutable_resumed()->set_author("ann");
  Apply(event);
}

void CampaignScript::End(v1::CampaignState state, v1::StopReason reason) {
  v1::Event event;
  event.mutable_ended()->set_state(state);
  event.mutable_ended()->set_reason(reason);
  event.mutable_ended()->set_message("that was all");
  Apply(event);
}

}  // namespace pawl
