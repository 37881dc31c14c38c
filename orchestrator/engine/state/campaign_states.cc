#include "orchestrator/engine/state/campaign_states.h"

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr CampaignTransition kTransitions[] = {
    {v1::WAITING, CampaignAction::kLease, v1::RUNNING, "a worker", "leases its first trial"},
    {v1::WAITING, CampaignAction::kPause, v1::PAUSED, "a user", "pauses it"},
    {v1::WAITING, CampaignAction::kCancel, v1::CANCELLED, "a user", "cancels it"},
    {v1::RUNNING, CampaignAction::kPause, v1::PAUSED, "a user, the orchestrator",
     "pauses it, or counts three failures of a trial that are not the candidate's fault, or three workers lost while "
     "they ran the start variant; a leased trial continues and its result counts"},
    {v1::RUNNING, CampaignAction::kCancel, v1::CANCELLED, "a user", "cancels it; leased trials are told to stop"},
    {v1::RUNNING, CampaignAction::kFinish, v1::FINISHED, "the engine",
     "finds that the goal is reached, the budget is spent or "
     "nothing is left to try"},
    {v1::RUNNING, CampaignAction::kFail, v1::FAILED, "the engine",
     "finds that the start variant was rejected, or that a choice does not change exactly one variable; leased trials "
     "are told to stop"},
    {v1::PAUSED, CampaignAction::kResume, v1::WAITING, "a user", "resumes it before any trial was leased"},
    {v1::PAUSED, CampaignAction::kResume, v1::RUNNING, "a user", "resumes it"},
    {v1::PAUSED, CampaignAction::kCancel, v1::CANCELLED, "a user", "cancels it"},
};

const char* ActionName(CampaignAction action) {
  switch (action) {
    case CampaignAction::kLease:
      return "lease";
    case CampaignAction::kPause:
      return "pause";
    case CampaignAction::kResume:
      return "resume";
    case CampaignAction::kCancel:
      return "cancel";
    case CampaignAction::kFinish:
      return "finish";
    case CampaignAction::kFail:
      return "fail";
  }
  return "";
}

}  // namespace

std::span<const CampaignTransition> CampaignTransitions() { return kTransitions; }

v1::CampaignState After(v1::CampaignState state, CampaignAction action, bool leased_before) {
  for (const CampaignTransition& transition : kTransitions) {
    if (transition.from != state || transition.action != action) continue;
    if (action == CampaignAction::kResume && (transition.to == v1::RUNNING) != leased_before) continue;
    return transition.to;
  }
  return v1::CAMPAIGN_STATE_UNSPECIFIED;
}

bool IsFinal(v1::CampaignState state) { return state == v1::FINISHED || state == v1::FAILED || state == v1::CANCELLED; }

std::string CampaignStatesPage() {
  std::string page =
      "# The states of a campaign\n\n"
      "Written by `engine_campaign_states_test` from the table in `orchestrator/engine/state/campaign_states.cc`. "
      "FINISHED, "
      "FAILED and CANCELLED are final.\n\n"
      "| from | action | to | who | when |\n| --- | --- | --- | --- | --- |\n";
  for (const CampaignTransition& t : kTransitions) {
    absl::StrAppend(&page, "| ", v1::CampaignState_Name(t.from), " | ", ActionName(t.action), " | ",
                    v1::CampaignState_Name(t.to), " | ", t.who, " | ", t.when, " |\n");
  }
  return page;
}

}  // namespace pawl
