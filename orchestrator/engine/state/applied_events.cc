#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "kernels/bundle_message.h"
#include "orchestrator/engine/state/campaign.h"
#include "orchestrator/engine/state/campaign_states.h"

namespace pawl {
namespace {

// Version 0.1.0 said these two things in texts only.
bool WasUntried(const v1::TrialFinished& finished) {
  return finished.iteration().untried() || !finished.result().passed_over().empty();
}
bool RanOnReplay(const v1::TrialLeased& leased) {
  return leased.replay() || absl::StartsWith(leased.device(), "replay of ");
}

bool UsesGpu(v1::Stage stage) {
  return stage == v1::STAGE_VALIDATE || stage == v1::STAGE_MEASURE || stage == v1::STAGE_PROFILE;
}

}  // namespace

void CampaignState::Apply(const v1::Event& event) {
  const absl::Time at = TimeOf(event.time());
  Moment moment(at);
  if (event.has_served_us()) moment.served = served_ = absl::Microseconds(event.served_us());
  if (clock_since_) {
    ran_ = Running(moment);
    clock_since_ = moment;
  }
  switch (event.event_case()) {
    case v1::Event::kSubmitted: {
      const v1::CampaignSubmitted& submitted = event.submitted();
      summary_.set_state(v1::WAITING);
      summary_.set_bundle(submitted.bundle());
      summary_.set_bundle_hash(submitted.bundle_hash());
      *summary_.mutable_spec() = submitted.spec();
      if (summary_.spec().goal().portfolio() > 1) *summary_.add_legs()->mutable_goal() = summary_.spec().goal();
      goal_sizes_ = GoalSizes(*bundle_, goal());
      *summary_.mutable_create_time() = event.time();
      space_hash_ = submitted.space_hash();
      patterns_ = submitted.patterns();
      author_ = submitted.author();
      idle_since_ = moment;
      break;
    }
    case v1::Event::kPlanned:
      ApplyPlanned(event.planned(), moment);
      break;
    case v1::Event::kLeased:
      ApplyLeased(event.leased(), moment);
      break;
    case v1::Event::kLost:
      ApplyLost(event.lost(), moment);
      break;
    case v1::Event::kFinished:
      ApplyFinished(event.finished());
      idle_since_ = moment;
      break;
    case v1::Event::kPaused:
      summary_.set_state(v1::PAUSED);
      summary_.set_message(event.paused().reason());
      // One event can reject many: this pause is for all of them.
      for (const v1::Iteration& iteration : iterations_) {
        if (event.paused().has_iteration() && PausingGate(iteration)) paused_for_.insert(iteration.number());
      }
      clock_since_.reset();
      break;
    case v1::Event::kResumed:
      summary_.set_state(After(v1::PAUSED, CampaignAction::kResume, leased_before_));
      summary_.clear_message();
      if (leased_before_) clock_since_ = moment;
      idle_since_ = moment;
      break;
    case v1::Event::kEnded:
      summary_.set_state(event.ended().state());
      summary_.set_stop_reason(event.ended().reason());
      summary_.set_message(event.ended().message());
      summary_.set_tier(event.ended().tier());
      *summary_.mutable_roof() = event.ended().roof();
      *summary_.mutable_end_time() = event.time();
      clock_since_.reset();
      if (event.ended().has_portfolio()) *summary_.mutable_portfolio() = event.ended().portfolio();
      if (leg_ > 0) {
        const v1::TotalGain& first = summary_.legs(0).total();
        const v1::Iteration* winner = summary_.legs(0).has_total() ? Find(first.iteration()) : nullptr;
        summary_.clear_total_gain();  // where a later leg found the first one's winner wrong
        if (winner != nullptr && winner->verdict() == v1::KEPT) *summary_.mutable_total_gain() = first;
        BeginLeg(0);
      }
      std::erase_if(open_, [](const auto& open) { return open.second.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY; });
      proposals_.clear();
      break;
    case v1::Event::kProposed:
      ++next_proposal_;
      proposals_.push_back({.proposed = event.proposed(), .at = at});
      break;
    case v1::Event::kDropped:
      DropProposal(event.dropped().change(), event.dropped().proposal());
      break;
    case v1::Event::kLeg:
      *summary_.add_legs() = event.leg().leg();
      BeginLeg(summary_.legs_size() - 1);
      summary_.mutable_legs(leg_)->set_from(summary_.best());
      idle_since_ = moment;
      break;
    case v1::Event::EVENT_NOT_SET:
      break;
  }
  CountRunning();
  summary_.set_minutes(absl::ToDoubleMinutes(ran_));
  const double seconds = absl::ToDoubleSeconds(ran_) * static_cast<double>(std::max<size_t>(1, workers_.size()));
  if (!summary_.replay() && seconds > 0) summary_.set_gpu_busy(std::min(1.0, busy_seconds_ / seconds));
}

void CampaignState::Count(const v1::Iteration& iteration, int by) {
  if (iteration.number() == 0) return;  // the start is no change
  v1::Counts& counts = *summary_.mutable_counts();
  if (iteration.untried()) return counts.set_untried(counts.untried() + by);
  counts.set_tried(counts.tried() + by);
  switch (iteration.verdict()) {
    case v1::KEPT:
      return counts.set_kept(counts.kept() + by);
    case v1::REVERTED:
      return counts.set_reverted(counts.reverted() + by);
    default:
      return counts.set_rejected(counts.rejected() + by);
  }
}

void CampaignState::CountRunning() {
  summary_.mutable_counts()->set_running(
      static_cast<int>(std::count_if(open_.begin(), open_.end(), [](const auto& open) {
        const v1::TrialPlanned& planned = open.second.planned;
        return planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && planned.iteration() > 0;
      })));
}

void CampaignState::DropProposal(const v1::Change& change, int number) {
  std::erase_if(proposals_, [&](const Proposal& proposal) {
    if (number > 0 && proposal.proposed.number() == number) return true;
    const v1::Change& proposed = proposal.proposed.change();
    return proposed.kind_case() == change.kind_case() && proposed.variable() == change.variable() &&
           proposed.to() == change.to() && proposed.source().patch() == change.source().patch();
  });
}

void CampaignState::ApplyPlanned(const v1::TrialPlanned& planned, const Moment& at) {
  OpenTrial& open = open_[planned.trial()];
  open.planned = planned;
  open.planned_at = at.time;
  open.free_since = at;
  open.best = summary_.best();
  open.kept_since_total = kept_since_total_;
  NoteVerifications();
  next_trial_ = std::max(next_trial_, planned.trial() + 1);
  if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION) return;
  next_iteration_ = std::max(next_iteration_, planned.iteration() + 1);
  int source = planned.has_parent() ? SourceIdOf(planned.parent()) : 0;
  if (!planned.patched_source().empty()) {
    source = FindSource(planned.patched_source());
    if (source < 0) source = AddSource(planned.patched_source());
  }
  source_ids_[planned.iteration()] = source;
  tried_.insert({source, VariantText(planned.variant())});
  DropProposal(planned.change(), planned.proposal());  // it is being tried, no matter who proposed it
}

void CampaignState::NoteVerifications() {
  summary_.set_verifying(std::any_of(open_.begin(), open_.end(), [](const auto& open) {
    return open.second.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
  }));
}

void CampaignState::ApplyLeased(const v1::TrialLeased& leased, const Moment& at) {
  OpenTrial& trial = open_[leased.trial()];
  trial.attempt = leased.attempt();
  trial.worker = leased.worker();
  trial.nonce = leased.nonce();
  trial.leased_at = at.served;
  if (summary_.state() == v1::WAITING) summary_.set_state(v1::RUNNING);
  if (ended()) return;  // a verification
  summary_.clear_message();
  summary_.set_device(leased.device());
  summary_.set_replay(RanOnReplay(leased));
  price_per_hour_ = leased.price_per_hour();
  if (leased_before_) ran_ = std::max(ran_ - absl::Microseconds(leased.held_us()), absl::ZeroDuration());
  if (!leased_before_) clock_since_ = at;
  leased_before_ = true;
}

void CampaignState::ApplyLost(const v1::LeaseLost& lost, const Moment& at) {
  const auto trial = open_.find(lost.trial());
  if (trial == open_.end()) return;
  trial->second.worker.clear();
  if (lost.reason() == v1::LeaseLost::RESTORED) trial->second.nonce.clear();
  trial->second.free_since = at;
  trial->second.killed += lost.reason() == v1::LeaseLost::EXPIRED;
  trial->second.host_faults += lost.reason() == v1::LeaseLost::HOST_FAULT;
}

// Of an iteration with its parent, or of an expedition's end with the best variant.
void CampaignState::NoteSameCode(const v1::TrialFinished& finished) {
  const auto open = open_.find(finished.trial());
  const v1::TrialResult& result = finished.result();
  if (open == open_.end() || !result.same_code() || result.has_failure() || !result.passed_over().empty()) return;
  const v1::TrialPlanned& planned = open->second.planned;
  const bool compared = planned.purpose() == v1::TRIAL_PURPOSE_ITERATION || planned.purpose() == v1::TRIAL_PURPOSE_END;
  if (compared && planned.has_parent()) same_code_[planned.iteration()] = {planned.parent(), leg_};
}

void CampaignState::ApplyStart(const v1::TrialPlanned& planned, const v1::Iteration& judged) {
  const int source = SourceIdOf(planned.iteration());
  source_ids_.erase(planned.iteration());
  source_ids_[judged.number()] = source;
  next_iteration_ = std::max(next_iteration_, judged.number() + 1);
  if (judged.verdict() != v1::KEPT) return;
  auto started = std::make_shared<v1::Bundle>(*bundle_);
  constexpr char kElse[] =
      "; was it written by a Pawl that reads implementations in another way? Use that one, or restore from a backup";
  if (const absl::Status status = SetImplementation(SourceOf(judged.number()), started.get()); !status.ok()) {
    damage_ =
        absl::DataLossError(absl::StrCat(summary_.name(), ": its start can't be read: ", status.message(), kElse));
    return;
  }
  if (const std::string hash = Sha256(BundleBytes(*started)); hash != planned.bundle_hash()) {
    damage_ = absl::DataLossError(absl::StrCat(summary_.name(), ": its start is not the recorded one, whose hash is ",
                                               planned.bundle_hash(), ", but ", hash, kElse));
  }
  bundle_ = std::move(started);
  spaces_[0] = std::make_shared<const BundleSpace>(bundle_);
  if (!bundle_->files().empty()) own_source_ = ImplementationText(*bundle_);
  source_ids_[judged.number()] = 0;
  tried_.insert({0, VariantText(VariantOf(judged))});
  memo_ = SearchMemo();
  summary_.set_bundle_hash(planned.bundle_hash());
}

void CampaignState::ApplyFinished(const v1::TrialFinished& finished) {
  const auto open = open_.find(finished.trial());
  if (open != open_.end() && finished.has_iteration() && !open->second.planned.bundle_hash().empty()) {
    ApplyStart(open->second.planned, finished.iteration());
  }
  const v1::TrialPurpose purpose = open == open_.end() ? v1::TRIAL_PURPOSE_UNSPECIFIED : open->second.planned.purpose();
  NoteSameCode(finished);
  const std::string worker = open != open_.end() ? open->second.worker : "";
  const bool overtaken = open != open_.end() && open->second.best != summary_.best();
  const int kept_before = open != open_.end() ? open->second.kept_since_total : kept_since_total_;
  open_.erase(finished.trial());
  NoteVerifications();
  if (finished.has_verification()) return;  // changes nothing
  for (const v1::StageTime& stage : finished.result().stages()) {
    summary_.set_gpu_seconds(summary_.gpu_seconds() + stage.seconds());
    if (UsesGpu(stage.stage())) busy_seconds_ += stage.seconds();
  }
  if (!worker.empty()) workers_.insert(worker);
  summary_.set_dollars(summary_.gpu_seconds() / 3600 * price_per_hour_);
  noise_.Add(finished.result(), goal_sizes_, goal().size());
  if (finished.has_total_gain()) return ApplyTotal(finished, kept_before);
  if (purpose == v1::TRIAL_PURPOSE_END) return ApplyEnd(finished);
  if (purpose == v1::TRIAL_PURPOSE_SANITIZE) return ApplySanitized(finished);
  if (!finished.has_iteration()) return;
  const v1::Iteration& iteration = finished.iteration();
  if (gpu_.name().empty()) {
    gpu_ = finished.result().gpu();
    gpu_model_ = BundleSpace::ModelOf(gpu_);
  }
  const bool has_sanitizer = !finished.result().toolchain().compute_sanitizer().empty() && !summary_.replay();
  had_sanitizer_ = had_sanitizer_ || has_sanitizer || iteration.unsanitized();
  summary_.set_gpu(gpu_.name());
  gpu_uuids_[iteration.number()] = finished.result().gpu().uuid();
  if (iteration.number() == 0) {
    baselines_ = finished.result().baselines();
    copy_gb_s_ = finished.result().copy_gb_s();
  }
  for (const v1::RevisedIteration& revision : finished.revised()) Revise(revision);
  if (!finished.revised().empty()) ElectBest();
  places_[iteration.number()] = iterations_.size();
  iterations_.push_back(iteration);
  iterations_.back().clear_passed_over();
  iterations_.back().clear_findings();
  iterations_.back().set_untried(WasUntried(finished));
  Count(iterations_.back(), 1);
  NoteUnsanitized(iterations_.back());
  if (iterations_.back().untried()) {
    ++untried_in_a_row_;
    return;
  }
  untried_in_a_row_ = 0;
  // One during which another was kept was no failure, whatever became of it.
  if (iteration.verdict() == v1::KEPT) reverts_in_a_row_ = 0;
  if (iteration.verdict() != v1::KEPT && !overtaken) ++reverts_in_a_row_;
  const bool may_be_end = iteration.expedition() && iteration.comparison() == v1::FASTER;
  if (iteration.verdict() == v1::KEPT || may_be_end) evidence_[iteration.number()] = finished.result().evidence();
  if (iteration.verdict() != v1::KEPT) return;
  if (iteration.number() == 0) {
    summary_.set_start_us(iteration.time_us());
    if (!finished.result().baseline_error().empty()) {
      summary_.set_baseline(absl::StrCat("the baseline failed: ", finished.result().baseline_error()));
    }
    for (const v1::BaselineTime& baseline : finished.result().baselines()) {
      const bool cold = bundle_->timing() == v1::TIMING_MODE_COLD;  // a baseline is timed warm
      if (cold || baseline.size() != summary_.spec().goal().size()) continue;
      summary_.set_baseline_us(baseline.graph_us());
      summary_.set_baseline(baseline.what());
    }
  }
  if (iteration.number() > 0) ++kept_since_total_;
  ElectBest();
}

// The one that is said to be the fastest; of equal ones the older.
void CampaignState::ElectBest() {
  const v1::Iteration* best = nullptr;
  for (const v1::Iteration& iteration : iterations_) {
    if (iteration.verdict() != v1::KEPT) continue;
    if (best == nullptr || SpeedupOf(iteration) > SpeedupOf(*best)) best = &iteration;
  }
  if (best == nullptr) {
    // The start was rejected, and all with it: as if it had failed at once.
    summary_.clear_best();
    summary_.clear_best_us();
    summary_.clear_start_us();
    summary_.clear_baseline_us();
    summary_.clear_baseline();
    summary_.clear_speedup_over_start();
    summary_.clear_speedup_over_baseline();
    summary_.clear_total_gain();
    return;
  }
  summary_.set_best(best->number());
  summary_.set_best_us(best->time_us());
  summary_.set_speedup_over_start(SpeedupOf(*best));
  summary_.set_speedup_over_baseline(best->speedup_over_baseline());
  if (best->leg() != leg_) {
    summary_.set_speedup_over_baseline(SpeedupOf(*best) * BaselineOverStart());
    for (const v1::SizeComparison& at : best->sizes()) {
      if (at.size() == goal().size()) summary_.set_best_us(at.time_us());
    }
  }
  const v1::Comparison* beside = BesideBaselineOf(summary_);
  const bool of_leg = summary_.total_gain().leg() == leg_;  // others were measured at other sizes
  if (beside != nullptr && of_leg) summary_.set_speedup_over_baseline(std::exp(beside->mean_log_ratio()));
}

void CampaignState::ApplyEnd(const v1::TrialFinished& finished) {
  for (const v1::RevisedIteration& revision : finished.revised()) {
    Revise(revision);
    if (revision.has_as_candidate() || revision.has_candidate_beside_witness()) {
      gpu_uuids_[revision.number()] = finished.result().gpu().uuid();
    }
    if (revision.verdict() != v1::KEPT) continue;
    // A step that gained little by itself was not profiled.
    const v1::TrialResult& result = finished.result();
    if (result.profiled() || !evidence_.contains(revision.number())) evidence_[revision.number()] = result.evidence();
    reverts_in_a_row_ = 0;
    ++kept_since_total_;
  }
  ElectBest();
}

void CampaignState::ApplySanitized(const v1::TrialFinished& finished) {
  for (const v1::RevisedIteration& revision : finished.revised()) {
    const v1::Iteration* before = Find(revision.number());
    const bool kept = before != nullptr && before->verdict() == v1::KEPT;
    // What others were measured against is gone.
    if (kept && revision.verdict() != v1::KEPT) reverts_in_a_row_ = 0;
    Revise(revision);
    if (revision.unsanitized()) sanitizes_alone_ = true;
  }
  ElectBest();
}

void CampaignState::NoteUnsanitized(const v1::Iteration& iteration) {
  if (iteration.verdict() == v1::KEPT && iteration.unsanitized()) {
    unsanitized_.insert(iteration.number());
  } else {
    unsanitized_.erase(iteration.number());
    if (unsanitized_.empty()) sanitizes_alone_ = false;
  }
}

void AddMissingFields(v1::Event* event) {
  if (event->has_leased()) event->mutable_leased()->set_replay(RanOnReplay(event->leased()));
  if (event->finished().has_iteration()) {
    event->mutable_finished()->mutable_iteration()->set_untried(WasUntried(event->finished()));
  }
}

}  // namespace pawl
