#include "orchestrator/engine/state/campaign.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/revision/revision.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "profiles/gpus.h"

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

absl::Time TimeOf(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

void SetTime(absl::Time time, google::protobuf::Timestamp* timestamp) {
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp->set_seconds(micros / 1'000'000);
  timestamp->set_nanos(static_cast<int32_t>(micros % 1'000'000) * 1000);
}

CampaignState::CampaignState(std::string name, std::shared_ptr<const BundleSpace> space)
    : bundle_(space->shared_bundle()) {
  spaces_.push_back(std::move(space));
  if (!bundle_->files().empty()) own_source_ = ImplementationText(*bundle_);
  summary_.set_name(std::move(name));
}

CampaignState::CampaignState(std::string name, v1::Bundle bundle)
    : CampaignState(std::move(name),
                    std::make_shared<const BundleSpace>(std::make_shared<const v1::Bundle>(std::move(bundle)))) {}

std::shared_ptr<CampaignState> CampaignState::Copy() const {
  return std::shared_ptr<CampaignState>(new CampaignState(*this));
}

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

int CampaignState::open_iterations() const {
  return static_cast<int>(std::count_if(open_.begin(), open_.end(), [](const auto& open) {
    return open.second.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION;
  }));
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

const v1::FailedGate* PausingGate(const v1::Iteration& iteration) {
  for (const v1::FailedGate& gate : iteration.failed_gates()) {
    if (gate.action() == v1::GATE_ACTION_PAUSE) return &gate;
  }
  return nullptr;
}

const v1::Comparison* BesideBaselineOf(const v1::Campaign& campaign) {
  const v1::TotalGain& total = campaign.total_gain();
  const bool measured = campaign.has_best() && total.iteration() == campaign.best() && !total.has_failure() &&
                        total.beside_baseline().interval().pairs() > 1;
  return measured ? &total.beside_baseline().interval() : nullptr;
}

bool CampaignState::IsComparedWithBest(int iteration) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& open) {
    const v1::TrialPlanned& planned = open.second.planned;
    return planned.purpose() == v1::TRIAL_PURPOSE_END && planned.iteration() == iteration;
  });
}

std::set<int> CampaignState::DescendedFrom(int iteration) const {
  std::set<int> descended = {iteration};
  for (const v1::Iteration& other : iterations_) {  // a parent was judged before
    if (other.has_parent() && descended.contains(other.parent())) descended.insert(other.number());
  }
  return descended;
}

std::set<int> CampaignState::BuiltOn(int iteration) const {
  std::set<int> built = {iteration};
  // What a variant was compared with may have been judged after it.
  for (size_t before = 0; before != built.size();) {
    before = built.size();
    for (const v1::Iteration& other : iterations_) {
      const bool descends = other.has_parent() && built.contains(other.parent());
      const bool by_comparison = other.has_over_best() && built.contains(other.compared_with());
      if (descends || by_comparison) built.insert(other.number());
    }
  }
  return built;
}

const v1::Iteration* CampaignState::UncomparedEnd() const {
  const v1::Iteration* best = this->best();
  for (auto iteration = iterations_.rbegin(); best != nullptr && iteration != iterations_.rend(); ++iteration) {
    const bool stopped = std::any_of(iteration->failed_gates().begin(), iteration->failed_gates().end(),
                                     [](const v1::FailedGate& gate) { return gate.action() != v1::GATE_ACTION_MARK; });
    if (iteration->leg() == leg_ && iteration->expedition() && iteration->verdict() == v1::REVERTED &&
        iteration->comparison() == v1::FASTER && !stopped && !iteration->has_over_best() &&
        SpeedupOf(*iteration) > SpeedupOf(*best) && !IsComparedWithBest(iteration->number())) {
      return &*iteration;
    }
  }
  return nullptr;
}

void CampaignState::ApplyEnd(const v1::TrialFinished& finished) {
  for (const v1::RevisedIteration& revision : finished.revised()) {
    Revise(revision);
    if (revision.has_as_candidate() || revision.has_candidate_beside_witness()) {
      gpu_uuids_[revision.number()] = finished.result().gpu().uuid();
    }
    if (revision.verdict() != v1::KEPT) continue;
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

void AddMissingFields(v1::Event* event) {
  if (event->has_leased()) event->mutable_leased()->set_replay(RanOnReplay(event->leased()));
  if (event->finished().has_iteration()) {
    event->mutable_finished()->mutable_iteration()->set_untried(WasUntried(event->finished()));
  }
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

absl::Duration Between(const Moment& before, const Moment& after) {
  const bool served = before.served && after.served;
  return served ? *after.served - *before.served : after.time - before.time;
}

absl::Duration CampaignState::Running(const Moment& now) const {
  if (!clock_since_) return ran_;
  absl::Duration since;
  if (clock_since_->served && now.served) since = *now.served - *clock_since_->served;
  if (!clock_since_->served && !now.served) since = now.time - clock_since_->time;
  return ran_ + std::max(since, absl::ZeroDuration());
}

bool CampaignState::start_rejected() const {
  const v1::Iteration* start = Find(0);
  return start != nullptr && start->verdict() == v1::REJECTED;
}

bool CampaignState::awaits_start() const { return !summary_.has_best() && IsContractAlone(*bundle_); }

bool CampaignState::ended() const { return IsFinal(summary_.state()); }

bool CampaignState::leasable() const { return summary_.state() != v1::PAUSED; }

const v1::Iteration* CampaignState::Find(int number) const {
  const auto place = places_.find(number);
  return place == places_.end() ? nullptr : &iterations_[place->second];
}

v1::ProcessNoise CampaignState::NoiseFor(int parent) const {
  return noise_.Noise(NoiseOf(gpu_.name()), iterations_, parent);
}

bool CampaignState::IsUntried(int iteration) const {
  const v1::Iteration* found = Find(iteration);
  return found != nullptr && found->untried();
}

const v1::Iteration* CampaignState::best() const { return summary_.has_best() ? Find(summary_.best()) : nullptr; }

const v1::Evidence* CampaignState::EvidenceOf(int iteration) const {
  const auto evidence = evidence_.find(iteration);
  return evidence == evidence_.end() ? nullptr : &evidence->second;
}

const v1::Evidence& CampaignState::best_evidence() const {
  const v1::Evidence* evidence = summary_.has_best() ? EvidenceOf(summary_.best()) : nullptr;
  return evidence == nullptr ? v1::Evidence::default_instance() : *evidence;
}

std::string CampaignState::BeyondLimits(const v1::Variant& variant, int source_id) const {
  if (gpu_.name().empty()) return "";
  for (const v1::Size& size : bundle_->sizes()) {
    const bool timed = std::any_of(goal_sizes_.begin(), goal_sizes_.end(),
                                   [&](const SizeWeight& one) { return one.size == size.name(); });
    if (!timed) continue;
    std::string why = SpaceOf(source_id).BeyondLimits(variant, size, gpu_, gpu_model_);
    if (!why.empty()) return why;
  }
  return "";
}

const std::string& CampaignState::GpuOf(int iteration) const {
  static const std::string& unknown = *new std::string;
  const auto found = gpu_uuids_.find(iteration);
  return found == gpu_uuids_.end() ? unknown : found->second;
}

int CampaignState::SourceIdOf(int iteration) const {
  const auto source = source_ids_.find(iteration);
  return source == source_ids_.end() ? 0 : source->second;
}

const std::string& CampaignState::SourceOf(int iteration) const {
  const int id = SourceIdOf(iteration);
  return id == 0 ? OwnSource() : sources_[static_cast<size_t>(id - 1)].text;
}

int CampaignState::SpaceIdOf(int source_id) const {
  return source_id == 0 ? 0 : sources_[static_cast<size_t>(source_id - 1)].space;
}

int CampaignState::AddSource(const std::string& text) {
  Source source{text, "", 0};
  for (const Proposal& waiting : proposals_) {
    if (waiting.patched.patched.ok() && waiting.patched.patched->text == text)
      source.normalized = waiting.patched.normalized;
  }
  if (source.normalized.empty()) source.normalized = NormalizedHash(*bundle_, text);
  if (ChangesToml(*bundle_, text)) {
    auto edited = std::make_shared<v1::Bundle>(*bundle_);
    // A text that can't be read was not written by this program: the trial's build says so.
    if (SetImplementation(text, edited.get()).ok()) {
      const std::string toml = ImplementationToml(*edited);
      const auto known = std::find_if(
          spaces_.begin(), spaces_.end(),
          [&](const std::shared_ptr<const BundleSpace>& space) { return ImplementationToml(space->bundle()) == toml; });
      source.space = static_cast<int>(known - spaces_.begin());
      if (known == spaces_.end()) spaces_.push_back(std::make_shared<const BundleSpace>(std::move(edited)));
    }
  }
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size());
}

bool CampaignState::Tried(const v1::Variant& variant, int source_id) const {
  return tried_.contains({source_id, VariantText(variant)});
}

const std::string& CampaignState::OwnSource() const {
  return bundle_->files().empty() ? bundle_->source().text() : own_source_;
}

int CampaignState::FindSource(const std::string& source) const {
  if (source == OwnSource()) return 0;
  const auto found =
      std::find_if(sources_.begin(), sources_.end(), [&](const Source& known) { return known.text == source; });
  return found == sources_.end() ? -1 : static_cast<int>(found - sources_.begin()) + 1;
}

int CampaignState::FindAlike(const PatchedBest& patched, const v1::Variant& variant) const {
  std::set<int> alike;
  if (patched.own_normalized == patched.normalized) alike.insert(0);
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].normalized == patched.normalized) alike.insert(static_cast<int>(i) + 1);
  }
  return FindIteration(alike, variant);
}

int CampaignState::FindSame(int source_id, const v1::Variant& variant) const {
  int untried = -1;
  for (const v1::Iteration& judged : iterations_) {
    const bool same =
        SourceIdOf(judged.number()) == source_id && VariantText(VariantOf(judged)) == VariantText(variant);
    if (same && !judged.untried()) return judged.number();
    if (same) untried = judged.number();
  }
  const int open = FindIteration({source_id}, variant);
  return open >= 0 ? open : untried;
}

int CampaignState::FindIteration(const std::set<int>& source_ids, const v1::Variant& variant) const {
  const std::string text = VariantText(variant);
  for (const auto& [iteration, source_id] : source_ids_) {
    if (!source_ids.contains(source_id)) continue;
    if (const v1::Iteration* judged = Find(iteration)) {
      // Neither tells what it would be worth now.
      if (judged->untried() || (judged->verdict() == v1::REVERTED && judged->comparison() == v1::FASTER)) continue;
      if (VariantText(VariantOf(*judged)) == text) return iteration;
    }
    for (const auto& [trial, open] : open_) {
      const bool same = open.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && open.planned.iteration() == iteration;
      if (same && VariantText(open.planned.variant()) == text) return iteration;
    }
  }
  return -1;
}

bool IsProduct(const v1::Iteration& iteration) {
  const bool by_comparison = iteration.over_best().pairs() > 0;
  return by_comparison ? iteration.compared_with() != 0 : iteration.parent() != 0;
}

v1::Variant VariantOf(const v1::Iteration& iteration) {
  v1::Variant variant;
  *variant.mutable_values() = iteration.variant();
  return variant;
}

}  // namespace pawl
