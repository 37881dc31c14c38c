#include "orchestrator/engine/campaign.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "orchestrator/engine/campaign_states.h"
#include "orchestrator/engine/chooser.h"

namespace pawl {

absl::Time TimeOf(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

void SetTime(absl::Time time, google::protobuf::Timestamp* timestamp) {
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp->set_seconds(micros / 1'000'000);
  timestamp->set_nanos(static_cast<int32_t>(micros % 1'000'000) * 1000);
}

CampaignState::CampaignState(std::string name, v1::Bundle bundle) : bundle_(std::move(bundle)), space_(bundle_) {
  summary_.set_name(std::move(name));
}

void CampaignState::Apply(const v1::Event& event) {
  const absl::Time at = TimeOf(event.time());
  switch (event.event_case()) {
    case v1::Event::kSubmitted: {
      const v1::CampaignSubmitted& submitted = event.submitted();
      summary_.set_state(v1::WAITING);
      summary_.set_bundle(submitted.bundle());
      summary_.set_bundle_hash(submitted.bundle_hash());
      *summary_.mutable_spec() = submitted.spec();
      *summary_.mutable_create_time() = event.time();
      space_hash_ = submitted.space_hash();
      break;
    }
    case v1::Event::kPlanned:
      ApplyPlanned(event.planned(), at);
      break;
    case v1::Event::kLeased:
      ApplyLeased(event.leased(), at);
      break;
    case v1::Event::kLost:
      ApplyLost(event.lost(), at);
      break;
    case v1::Event::kFinished:
      ApplyFinished(event.finished());
      break;
    case v1::Event::kPaused:
      summary_.set_state(v1::PAUSED);
      summary_.set_message(event.paused().reason());
      StopClock(at);
      break;
    case v1::Event::kResumed:
      summary_.set_state(After(v1::PAUSED, CampaignAction::kResume, leased_before_));
      summary_.clear_message();
      if (leased_before_) clock_since_ = at;
      break;
    case v1::Event::kEnded:
      summary_.set_state(event.ended().state());
      summary_.set_stop_reason(event.ended().reason());
      summary_.set_message(event.ended().message());
      *summary_.mutable_end_time() = event.time();
      StopClock(at);
      std::erase_if(open_,
                    [](const auto& open) { return open.second.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION; });
      proposals_.clear();
      break;
    case v1::Event::kProposed:
      proposals_.push_back({event.proposed(), at});
      break;
    case v1::Event::EVENT_NOT_SET:
      break;
  }
}

void CampaignState::ApplyPlanned(const v1::TrialPlanned& planned, absl::Time at) {
  OpenTrial& open = open_[planned.trial()];
  open.planned = planned;
  open.planned_at = at;
  open.free_since = at;
  NoteVerifications();
  next_trial_ = std::max(next_trial_, planned.trial() + 1);
  if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION) return;
  next_iteration_ = std::max(next_iteration_, planned.iteration() + 1);
  tried_[VariantText(planned.variant())] = planned.iteration();
  // A proposal is spent once its variant is planned, whoever proposed it, or can't be made of the best one any more.
  std::erase_if(proposals_, [&](const Proposal& proposal) {
    std::string why;
    const std::optional<v1::Variant> variant = Changed(*this, VariantOf(*best()), proposal.proposed.change(), &why);
    return !variant || Tried(*variant);
  });
}

void CampaignState::NoteVerifications() {
  summary_.set_verifying(std::any_of(open_.begin(), open_.end(), [](const auto& open) {
    return open.second.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
  }));
}

void CampaignState::ApplyLeased(const v1::TrialLeased& leased, absl::Time at) {
  OpenTrial& trial = open_[leased.trial()];
  trial.attempt = leased.attempt();
  trial.worker = leased.worker();
  if (summary_.state() == v1::WAITING) summary_.set_state(v1::RUNNING);
  if (ended()) return;  // a verification
  summary_.clear_message();
  summary_.set_device(leased.device());
  price_per_hour_ = leased.price_per_hour();
  if (!leased_before_) clock_since_ = at;
  leased_before_ = true;
}

void CampaignState::ApplyLost(const v1::LeaseLost& lost, absl::Time at) {
  const auto trial = open_.find(lost.trial());
  if (trial == open_.end()) return;
  trial->second.worker.clear();
  trial->second.free_since = at;
  trial->second.killed += lost.reason() == v1::LeaseLost::EXPIRED;
  trial->second.host_faults += lost.reason() == v1::LeaseLost::HOST_FAULT;
}

void CampaignState::ApplyFinished(const v1::TrialFinished& finished) {
  open_.erase(finished.trial());
  NoteVerifications();
  if (!finished.has_iteration()) return;  // a verification changes nothing
  for (const v1::StageTime& stage : finished.result().stages()) {
    summary_.set_gpu_seconds(summary_.gpu_seconds() + stage.seconds());
  }
  summary_.set_dollars(summary_.gpu_seconds() / 3600 * price_per_hour_);
  const v1::Iteration& iteration = finished.iteration();
  places_[iteration.number()] = iterations_.size();
  iterations_.push_back(iteration);
  iterations_.back().clear_passed_over();
  summary_.set_iterations(summary_.iterations() + 1);
  switch (iteration.verdict()) {
    case v1::KEPT:
      summary_.set_kept(summary_.kept() + 1);
      break;
    case v1::REVERTED:
      summary_.set_reverted(summary_.reverted() + 1);
      break;
    default:
      summary_.set_rejected(summary_.rejected() + 1);
  }
  reverts_in_a_row_ = iteration.verdict() == v1::KEPT ? 0 : reverts_in_a_row_ + 1;
  if (iteration.verdict() != v1::KEPT) return;
  if (iteration.number() == 0) {
    summary_.set_start_us(iteration.time_us());
    if (!finished.result().baseline_error().empty()) {
      summary_.set_baseline(absl::StrCat("it failed: ", finished.result().baseline_error()));
    }
    for (const v1::BaselineTime& baseline : finished.result().baselines()) {
      const bool cold = bundle_.timing() == v1::TIMING_MODE_COLD;  // a baseline is timed warm
      if (cold || baseline.size() != summary_.spec().goal().size()) continue;
      summary_.set_baseline_us(baseline.graph_us());
      summary_.set_baseline(baseline.what());
    }
  }
  const v1::Iteration* before = best();
  if (before != nullptr && iteration.speedup_over_start() <= before->speedup_over_start()) return;
  summary_.set_best(iteration.number());
  summary_.set_best_us(iteration.time_us());
  summary_.set_speedup_over_start(iteration.speedup_over_start());
  summary_.set_speedup_over_baseline(iteration.speedup_over_baseline());
  best_evidence_ = finished.result().evidence();
}

void CampaignState::StopClock(absl::Time at) {
  if (clock_since_) ran_ += at - *clock_since_;
  clock_since_.reset();
}

absl::Duration CampaignState::Running(absl::Time now) const {
  return clock_since_ ? ran_ + (now - *clock_since_) : ran_;
}

bool CampaignState::ended() const { return IsFinal(summary_.state()); }

bool CampaignState::leasable() const { return summary_.state() != v1::PAUSED; }

const v1::Iteration* CampaignState::Find(int number) const {
  const auto place = places_.find(number);
  return place == places_.end() ? nullptr : &iterations_[place->second];
}

const v1::Iteration* CampaignState::best() const { return summary_.has_best() ? Find(summary_.best()) : nullptr; }

bool CampaignState::Tried(const v1::Variant& variant) const { return tried_.contains(VariantText(variant)); }

}  // namespace pawl
