#include "orchestrator/core/leases.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/engine/verdict/sanitized.h"
#include "orchestrator/engine/verdict/verdict.h"

namespace pawl {
namespace {

// The end of a trial that can't be run.
v1::Event PutTrialAside(const CampaignState& campaign, const OpenTrial& open, const std::string& why,
                        const Gates& gates, absl::Time now) {
  v1::Event event;
  v1::TrialFinished& finished = *event.mutable_finished();
  finished.set_trial(open.planned.trial());
  finished.set_attempt(open.attempt);
  if (open.planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
    v1::TrialResult result;  // as any other variant that does this
    result.mutable_failure()->set_stage(v1::STAGE_VALIDATE);
    result.mutable_failure()->set_check(v1::CHECK_FAULT);
    result.mutable_failure()->set_message(why);
    FinishTotal(campaign, open.planned, result, &finished);
  } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_END) {
    *finished.add_revised() = UncomparedEnd(campaign, open.planned, why);
  } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
    for (v1::RevisedIteration& revised : UnsanitizedFor(campaign, open.planned, why, gates)) {
      *finished.add_revised() = std::move(revised);
    }
  } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) {
    finished.mutable_verification()->set_iteration(open.planned.iteration());
    finished.mutable_verification()->set_text(why);
  } else {
    *finished.mutable_iteration() = PutAside(campaign, open.planned, open.killed);
    SetTime(open.planned_at, finished.mutable_iteration()->mutable_create_time());
    SetTime(now, finished.mutable_iteration()->mutable_end_time());
  }
  return event;
}

}  // namespace

void Leases::Grant(TrialKey key, v1::Worker* worker) {
  state_.leases[key] = {.deadline = state_.served.Now() + options_.lease};
  worker->add_trials(TrialName(key.first, key.second));
}

void Leases::Renew(TrialKey key, const std::string& worker) {
  state_.leases[key] = {.deadline = state_.served.Now() + options_.lease, .renewed = true};
  state_.unconfirmed.erase(worker);
}

void Leases::Release(TrialKey key, const std::string& worker) {
  state_.leases.erase(key);
  if (v1::Worker* held_by = state_.workers.Mutable(worker)) {
    auto* trials = held_by->mutable_trials();
    trials->erase(std::remove(trials->begin(), trials->end(), TrialName(key.first, key.second)), trials->end());
  }
}

void Leases::ReleaseAllOf(int64_t number, const CampaignState& campaign) {
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) continue;  // goes on
    Release({number, trial}, open.worker);
  }
}

void Leases::Lose(Step* step, TrialKey key, v1::LeaseLost::Reason reason, const std::string& message) {
  CampaignState& campaign = state_.Own(key.first);
  const OpenTrial before = campaign.open_trials().at(key.second);
  // Nobody knows whether it was ever begun: a worker may have been stopped with its request for a trial under way.
  if (reason == v1::LeaseLost::EXPIRED && !state_.leases[key].renewed) {
    reason = v1::LeaseLost::NOT_RENEWED;
    state_.unconfirmed.insert(before.worker);
  }
  Release(key, before.worker);
  if (reason == v1::LeaseLost::HOST_FAULT) state_.failed_by[key].insert(before.worker);
  v1::Event event;
  event.mutable_lost()->set_trial(key.second);
  event.mutable_lost()->set_attempt(before.attempt);
  event.mutable_lost()->set_worker(before.worker);
  event.mutable_lost()->set_reason(reason);
  event.mutable_lost()->set_message(message);
  committer_.Add(step, &campaign, std::move(event));

  const OpenTrial& open = campaign.open_trials().at(key.second);
  const bool too_many_faults = reason == v1::LeaseLost::HOST_FAULT &&
                               open.host_faults >= options_.profiles->gates.Get(GateKind::kPreflight).threshold;
  const bool verifies = open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
  // It was tried again by somebody who resumed the campaign: it goes on without what can't be sanitized.
  const bool sanitizes = open.planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE;
  const bool resumed = open.host_faults > options_.profiles->gates.Get(GateKind::kPreflight).threshold;
  const auto& unsanitized = open.planned.unsanitized();
  const bool of_start = sanitizes && unsanitized.size() == 1 && unsanitized[0] == 0;  // all would be lost with it
  const bool gives_up = too_many_faults && sanitizes && !of_start && (resumed || campaign.sanitizes_alone());
  const bool too_many_killed = reason == v1::LeaseLost::EXPIRED && open.killed >= options_.max_killed;
  const bool starts =
      of_start || (open.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && open.planned.iteration() == 0);
  const auto pause = [&](const std::string& why) {
    if (campaign.summary().state() == v1::PAUSED) return;
    v1::Event paused;
    paused.mutable_paused()->set_author("pawl");
    paused.mutable_paused()->set_reason(why);
    committer_.Add(step, &campaign, std::move(paused));
  };
  if (too_many_killed && starts) {
    // Nothing says that it is the candidate's fault, and without a start there is no campaign.
    pause(absl::StrCat(open.killed, " workers were lost while they ran the start variant, the last one ", before.worker,
                       ": see their logs. pawl resume tries it again, pawl cancel ends the campaign"));
  } else if (too_many_killed || gives_up || (verifies && too_many_faults)) {
    const std::string why = too_many_faults
                                ? absl::StrCat("put aside: it failed ", open.host_faults, " times, the last time on ",
                                               before.worker, ": ", message)
                                : absl::StrCat("put aside: ", open.killed, " workers were lost while running it");
    committer_.Add(step, &campaign, PutTrialAside(campaign, open, why, options_.profiles->gates, step->now));
  } else if (too_many_faults) {
    pause(absl::StrCat("trial ", key.second, " failed ", open.host_faults,
                       " times because of the machine, the last time on ", before.worker, ": ", message,
                       of_start ? ". pawl resume tries it again, pawl cancel ends the campaign"
                       : sanitizes
                           ? ". pawl resume tries it once more, and rejects the variants over which it fails again"
                           : ". pawl resume continues the campaign"));
  }
}

void Leases::LoseAllOf(Step* step, const v1::Worker& worker, v1::LeaseLost::Reason reason, const std::string& message) {
  const std::vector<std::string> held(worker.trials().begin(), worker.trials().end());
  for (const std::string& name : held) {
    const std::optional<NameInCampaign> trial = ParseTrialName(name);
    if (!trial || !state_.leases.contains({trial->campaign, trial->number})) continue;
    Lose(step, {trial->campaign, trial->number}, reason, message);
  }
}

void Leases::Expire(Step* step) {
  std::vector<TrialKey> expired;
  const absl::Duration served = state_.served.Now();
  for (const auto& [key, lease] : state_.leases) {
    if (lease.deadline <= served && !state_.InUse(key.first)) expired.push_back(key);
  }
  for (const TrialKey& key : expired) {
    // A worker that is there and does not renew has dropped the trial, which did it no harm. One that the trial killed
    // was last heard of at most one renewal after the last renewal of this lease, by another call: long ago. Half a
    // renewal is for the way.
    const std::string& worker = state_.campaigns.at(key.first)->open_trials().at(key.second).worker;
    const bool there = state_.workers.HeardWithin(1.5 * options_.renew, worker, step->now);
    const bool dropped = there && state_.leases.at(key).renewed;
    Lose(step, key, dropped ? v1::LeaseLost::GIVEN_BACK : v1::LeaseLost::EXPIRED,
         there ? "the worker did not renew the lease" : "the worker sent no heartbeat");
  }
}

v1::ServiceNotes Leases::Notes() const {
  v1::ServiceNotes notes;
  notes.set_served_us(absl::ToInt64Microseconds(state_.served.Now()));
  for (const auto& [key, lease] : state_.leases) {
    const auto& open_trials = state_.campaigns.at(key.first)->open_trials();
    const auto open = open_trials.find(key.second);
    if (open == open_trials.end()) continue;
    v1::ServiceNotes::Lease& noted = *notes.add_leases();
    noted.set_campaign(key.first);
    noted.set_trial(key.second);
    noted.set_attempt(open->second.attempt);
    noted.set_deadline_us(absl::ToInt64Microseconds(lease.deadline));
    noted.set_renewed(lease.renewed);
    noted.set_adopted(lease.adopted);
  }
  for (const auto& [author, span] : state_.limited) {
    if (!span.until) (*notes.mutable_limited_since_us())[author] = absl::ToInt64Microseconds(span.since);
  }
  return notes;
}

absl::Status OtherCopy(const std::string& trial) {
  return LeaseError(absl::StatusCode::kAborted,
                    absl::StrCat("the lease of ", trial, " has ended: the database was restored from a copy since"),
                    trial);
}

absl::Status LeaseError(absl::StatusCode code, const std::string& message, const std::string& trial) {
  v1::ErrorDetail detail;
  detail.set_resource(trial);
  detail.set_fix("drop the trial and lease another");
  return Error(code, message, detail);
}

}  // namespace pawl
