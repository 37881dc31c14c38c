#include "orchestrator/core/trial_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/faults/fault_point.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "base/revision/revision.h"
#include "kernels/limits.h"
#include "kernels/space.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/verdict/sanitized.h"
#include "orchestrator/engine/verdict/seat.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "orchestrator/security/tokens.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kMaxSamples = 1000;  // of one size
constexpr size_t kMaxSizes = 100;
constexpr int kMaxDisturbances = 16;  // reasons
constexpr int kMaxGpuFaults = 2;      // of a worker's process
constexpr int kMaxStages = 100, kMaxBeside = 100;
// Results in one transaction: others who need the lock wait for all of them.
constexpr size_t kMaxTogether = 16;

absl::Status CheckPairs(const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs) {
  std::map<std::string, int> at_size;
  for (const v1::PairSample& pair : pairs) {
    if (++at_size[pair.size()] > kMaxSamples) return BadField("result.pairs", "expected at most 1000 of a size");
    if (at_size.size() > kMaxSizes || pair.size().size() > kMaxSizeName) {
      return BadField("result.pairs", "expected at most 100 sizes, of the bundle");
    }
    const double ratio = std::log(pair.parent_us() / pair.candidate_us());
    if (!(pair.parent_us() > 0 && pair.candidate_us() > 0) || !std::isfinite(ratio)) {
      return BadField("result.pairs", "expected times above 0");
    }
    if (!(std::abs(pair.log_ratio() - ratio) < 1e-6)) {
      return BadField("result.pairs", "a log_ratio does not match its times");
    }
    if (!(pair.anchor_us() >= 0) || !std::isfinite(pair.anchor_us())) {
      return BadField("result.pairs", "an anchor's time must be at least 0");
    }
    if (!(pair.witness_us() >= 0) || !std::isfinite(pair.witness_us())) {
      return BadField("result.pairs", "a witness's time must be at least 0");
    }
    if (pair.process() < 0) return BadField("result.pairs", "a process is below 0");
  }
  return absl::OkStatus();
}

struct Span {
  double begin = 0, end = 0;
};

// Of these stages, since the trial was leased: from the first that needs a GPU. Nothing: they do not say when they
// began.
std::optional<Span> OnGpu(const google::protobuf::RepeatedPtrField<v1::StageTime>& stages) {
  std::optional<Span> span;
  for (const v1::StageTime& stage : stages) {
    if (!stage.has_begin()) return std::nullopt;
    if (stage.stage() == v1::STAGE_STATIC_CHECK || stage.stage() == v1::STAGE_BUILD) continue;
    if (!span) span = Span{stage.begin(), 0};
    span->end = std::max(span->end, stage.begin() + stage.seconds());
  }
  return span;
}

// A trial that judges no new iteration took time for one that there is: that shows in the iteration's times.
void AddLater(const CampaignState& campaign, const v1::TrialPlanned& planned, absl::Time now,
              v1::TrialFinished* finished) {
  v1::BesideTime::Kind kind = v1::BesideTime::KIND_UNSPECIFIED;
  if (planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) kind = v1::BesideTime::SANITIZER;
  if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) kind = v1::BesideTime::TOTAL;
  if (planned.purpose() == v1::TRIAL_PURPOSE_END) kind = v1::BesideTime::END;
  const v1::Iteration* iteration = campaign.Find(planned.iteration());
  if (kind == v1::BesideTime::KIND_UNSPECIFIED || iteration == nullptr || !iteration->has_end_time()) return;
  const std::optional<Span> took = OnGpu(finished->result().stages()), before = OnGpu(iteration->stages());
  if (!took || !before) return;
  auto& all = *finished->mutable_revised();
  auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.number() == planned.iteration(); });
  if (found == all.end()) {
    if (kind == v1::BesideTime::SANITIZER) return;  // it was taken back meanwhile
    *all.Add() = Unrevised(*iteration);
    found = all.end() - 1;
  }
  v1::BesideTime& beside = *found->add_beside();
  beside.set_kind(kind);
  beside.set_seconds(took->end - took->begin);
  beside.set_begin(absl::ToDoubleSeconds(now - TimeOf(iteration->end_time())) + before->end - beside.seconds());
  if (finished->worker() != iteration->worker()) beside.set_worker(finished->worker());
}

constexpr int kMaxForms = 8;           // of a hand-off
constexpr size_t kMaxFormText = 2000;  // that is kept of what one printed

void AddHandOff(const v1::TrialResult& result, v1::Verification* verification) {
  for (const v1::HandOffCheck& check : result.hand_off()) {
    if (verification->hand_off_size() == kMaxForms) return;
    v1::HandOffCheck& added = *verification->add_hand_off();
    added = check;
    added.set_text(Shortened(check.text(), kMaxFormText));
  }
}

// What no honest worker sends.
absl::Status CheckResult(const v1::TrialResult& result) {
  if (absl::Status status = CheckPairs(result.pairs()); !status.ok()) return status;
  if (absl::Status status = CheckPairs(result.confirming_pairs()); !status.ok()) return status;
  if (result.disturbances_size() > kMaxDisturbances) {
    return BadField("result.disturbances", absl::StrCat("expected at most ", kMaxDisturbances));
  }
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (!std::isfinite(baseline.graph_us()) || baseline.graph_us() < 0) {
      return BadField("result.baselines", "expected times of 0 or more");
    }
  }
  for (const v1::StageTime& stage : result.stages()) {
    if (!std::isfinite(stage.seconds()) || stage.seconds() < 0) {
      return BadField("result.stages", "expected seconds that are 0 or more");
    }
    if (!std::isfinite(stage.begin()) || stage.begin() < 0) {
      return BadField("result.stages", "expected a begin that is 0 or more");
    }
  }
  if (result.cached_builds() < 0 || result.compiled_builds() < 0) {
    return BadField("result", "expected numbers of builds of 0 or more");
  }
  if (result.stages_size() > kMaxStages) {
    return BadField("result.stages", absl::StrCat("expected at most ", kMaxStages));
  }
  if (result.beside_size() > kMaxBeside) {
    return BadField("result.beside", absl::StrCat("expected at most ", kMaxBeside));
  }
  for (const v1::BesideTime& beside : result.beside()) {
    if (!std::isfinite(beside.begin()) || !std::isfinite(beside.seconds()) || beside.seconds() < 0) {
      return BadField("result.beside", "expected seconds that are 0 or more, and a begin");
    }
  }
  for (const double us : {result.warm_us(), result.cold_us(), result.parent_warm_us(), result.parent_cold_us()}) {
    if (!std::isfinite(us) || us < 0) return BadField("result", "expected times of 0 or more");
  }
  return absl::OkStatus();
}

// The worker must have run what is planned: a mistake here would be stored as a measurement of something else.
absl::Status CheckIsOf(const CampaignState& campaign, const v1::TrialPlanned& planned,
                       const v1::CompleteTrialRequest& request) {
  const bool starts = !planned.bundle_hash().empty();
  if (request.bundle_hash() != (starts ? planned.bundle_hash() : campaign.summary().bundle_hash())) {
    return BadField("bundle_hash", "the result is of another bundle than the trial");
  }
  if (VariantText(request.variant()) != VariantText(planned.variant())) {
    return BadField("variant", absl::StrCat("the result is of ", Shortened(VariantText(request.variant()), 200),
                                            ", the trial is of ", VariantText(planned.variant())));
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
    const auto& found = request.result().sanitized_variants();
    for (const int number : planned.unsanitized()) {
      const bool of_this =
          std::any_of(found.begin(), found.end(), [&](const auto& one) { return one.iteration() == number; });
      if (!of_this) return BadField("result.sanitized_variants", absl::StrCat("iteration ", number, " is missing"));
    }
  }
  const v1::Variant parent = planned.has_parent() ? VariantOf(*campaign.Find(planned.parent())) : v1::Variant();
  if (request.has_parent() != planned.has_parent() || VariantText(request.parent()) != VariantText(parent)) {
    return BadField("parent", "the result was compared with another parent than the trial's");
  }
  return absl::OkStatus();
}

}  // namespace

CompletionQueue::CompletionQueue(Handler handler, int threads) : handler_(std::move(handler)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

CompletionQueue::~CompletionQueue() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  arrived_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void CompletionQueue::Add(Completion completion) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(std::move(completion));
  }
  arrived_.Signal();
}

void CompletionQueue::Work() {
  while (true) {
    std::vector<Completion> together;
    {
      absl::MutexLock lock(&mutex_);
      while (!ending_ && waiting_.empty()) arrived_.Wait(&mutex_);
      if (waiting_.empty()) return;  // and not before: everyone is answered
      while (!waiting_.empty() && together.size() < kMaxTogether) {
        together.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    handler_(together);
  }
}

void Orchestrator::Complete(const v1::CompleteTrialRequest& request, CompleteAnswer answer) {
  if (absl::Status status = CheckResult(request.result()); !status.ok()) return answer(status);
  completions_.Add({&request, std::move(answer)});
}

void Orchestrator::CompleteTogether(const std::vector<Completion>& together) {
  std::vector<CheckedCompletion> checked;
  for (const Completion& each : together) checked.push_back(Check(each));
  std::vector<OpenDecision> open;
  const std::shared_ptr<AppliedResults> results = ApplyTogether(&checked, &open);
  std::vector<NextLease> next;
  for (CheckedCompletion& each : checked) {
    const v1::CompleteTrialRequest& request = *each.completion->request;
    if (each.answer.ok() && request.lease_next() && !each.closed && !each.held) {
      next.push_back({request.worker(), &*each.answer});
    }
  }
  Decide(std::move(open), std::move(next), results);
  for (CheckedCompletion& each : checked) {
    // Where nothing was written no answer holds: what was refused may have been for what another had just delivered.
    if (!results->written->ok()) each.answer = *results->written;
    if (results->written->ok() && each.closed) each.answer = NotOpen(*each.lease);
    if (!each.held) each.completion->answer(std::move(each.answer));
  }
}

// What takes no lock, or reads the database.
CheckedCompletion Orchestrator::Check(const Completion& completion) {
  const v1::CompleteTrialRequest& request = *completion.request;
  CheckedCompletion checked{.completion = &completion,
                            .lease = ReadLeaseToken(store_.secret(), request.lease(), request.worker()),
                            .missing_blob = "",
                            .recorded = std::nullopt};
  if (!checked.lease) return checked;
  for (const v1::Blob& blob : request.result().blobs()) {
    const absl::StatusOr<bool> there = store_.HasBlob(blob.hash());
    if (!there.ok()) checked.missing_blob = there.status();
    if (there.ok() && *there) continue;
    if (there.ok()) checked.missing_blob = blob.hash();
    break;
  }
  std::optional<int> verified;
  {
    absl::MutexLock lock(&mutex_);
    if (const auto found = state_.campaigns.find(checked.lease->campaign); found != state_.campaigns.end()) {
      const auto open = found->second->open_trials().find(checked.lease->trial);
      const bool verifies =
          open != found->second->open_trials().end() && open->second.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
      if (verifies) verified = open->second.planned.iteration();
    }
  }
  if (verified) checked.recorded = store_.GetIteration(checked.lease->campaign, *verified);
  return checked;
}

std::shared_ptr<AppliedResults> Orchestrator::ApplyTogether(std::vector<CheckedCompletion>* together,
                                                            std::vector<OpenDecision>* open) {
  auto results = std::make_shared<AppliedResults>();
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) {
    results->written = status;
    return results;
  }
  Step& step = results->step = Begin();
  for (CheckedCompletion& each : *together) {
    if (absl::Status status = CompleteOne(&step, &each); !status.ok()) each.answer = status;
  }
  Pass(FaultPoint::kAfterResult);
  *open = Open(step.touched);
  unwritten_.push_back(results);
  // Others may change those of its campaigns that are not in use, and trials may have been given back.
  const bool waits = !open->empty() && open->size() == step.touched.size();
  if (!waits) scheduler_.OfferTrials(&step);
  if (!waits) (void)WriteResults(turn.deferred());  // a failure is kept in the results
  return results;
}

absl::Status Orchestrator::NotOpen(const LeaseName& lease) {
  absl::StatusOr<v1::Campaign> stored = Stored(lease.campaign);
  if (!stored.ok()) return stored.status();
  const std::string trial = TrialName(lease.campaign, lease.trial);
  if (stored->state() == v1::CANCELLED) {
    return LeaseError(absl::StatusCode::kFailedPrecondition, absl::StrCat(stored->name(), " was cancelled"), trial);
  }
  const std::string ended = stored->state() == v1::FAILED ? ", or its campaign failed without it" : "";
  return LeaseError(absl::StatusCode::kAlreadyExists, absl::StrCat(trial, " has its result already", ended), trial);
}

absl::Status Orchestrator::CompleteOne(Step* step, CheckedCompletion* checked) {
  const v1::CompleteTrialRequest& request = *checked->completion->request;
  if (absl::Status status = state_.workers.Hear(request.worker(), request.instance(), step->now); !status.ok()) {
    return status;
  }
  const std::optional<LeaseName>& lease = checked->lease;
  if (!lease) return LeaseError(absl::StatusCode::kPermissionDenied, "the lease is not this worker's", "");
  if (state_.InUse(lease->campaign)) {
    held_[lease->campaign].push_back(*checked->completion);
    checked->held = true;
    return absl::OkStatus();
  }
  const TrialKey key{lease->campaign, lease->trial};
  const std::string trial = TrialName(lease->campaign, lease->trial);
  const auto found = state_.campaigns.find(lease->campaign);
  if (found == state_.campaigns.end() || !found->second->open_trials().contains(lease->trial)) {
    checked->closed = true;
    return absl::OkStatus();
  }
  CampaignState& campaign = *found->second;
  const OpenTrial& open = campaign.open_trials().at(lease->trial);  // until an event is added
  if (open.attempt != lease->attempt) {
    return LeaseError(absl::StatusCode::kAborted,
                      absl::StrCat("the lease of ", trial, " ran out and it was leased again"), trial);
  }
  if (open.nonce != lease->nonce) return OtherCopy(trial);
  if (request.has_result()) {
    if (absl::Status status = CheckIsOf(campaign, open.planned, request); !status.ok()) return status;
  }
  if (request.outcome_case() == v1::CompleteTrialRequest::OUTCOME_NOT_SET) {
    return BadField("outcome", "expected a result, a host fault, or given_back");
  }
  v1::Worker* worker = state_.workers.Mutable(request.worker());
  if (request.has_result()) {
    if (!checked->missing_blob.ok()) return checked->missing_blob.status();
    if (!checked->missing_blob->empty()) {
      return LeaseError(absl::StatusCode::kFailedPrecondition,
                        absl::StrCat("the blob ", *checked->missing_blob, " was not uploaded"), trial);
    }
    v1::Event event;
    v1::TrialFinished& finished = *event.mutable_finished();
    finished.set_trial(lease->trial);
    finished.set_attempt(lease->attempt);
    finished.set_worker(request.worker());
    *finished.mutable_result() = request.result();
    if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) {
      if (!checked->recorded.ok()) return checked->recorded.status();
      if (*checked->recorded) {
        *finished.mutable_verification() = Compare(**checked->recorded, request.result(), campaign.bundle());
        AddHandOff(request.result(), finished.mutable_verification());
      }
    } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      FinishTotal(campaign, open.planned, request.result(), &finished);
    } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_END) {
      *finished.add_revised() = JudgeEnd(campaign, open.planned, request.result(), options_.profiles->gates);
    } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
      for (v1::RevisedIteration& revised :
           JudgeSanitized(campaign, open.planned, request.result(), options_.profiles->gates)) {
        *finished.add_revised() = std::move(revised);
      }
    } else {
      v1::Iteration& iteration = *finished.mutable_iteration();
      iteration = Judge(campaign, open.planned, request.result(), options_.profiles->gates,
                        state_.baselines.Expected(campaign, request.result()));
      iteration.set_worker(request.worker());
      SetTime(open.planned_at, iteration.mutable_create_time());
      SetTime(step->now, iteration.mutable_end_time());
      for (v1::RevisedIteration& revised :
           RevisedBySeat(campaign, iteration, open.planned.noise(), options_.profiles->gates)) {
        *finished.add_revised() = std::move(revised);
      }
    }
    if (!campaign.start_rejected()) AddLater(campaign, open.planned, step->now, &finished);
    leases_.Release(key, request.worker());
    state_.failed_by.erase(key);
    state_.unconfirmed.erase(request.worker());
    worker->set_completed(worker->completed() + 1);
    committer_.Add(step, &campaign, std::move(event));
  } else if (open.worker == request.worker()) {
    const bool fault = request.has_host_fault();
    if (fault && request.host_fault().gpu()) {
      worker->set_host_faults(worker->host_faults() + 1);
      if (worker->host_faults() >= kMaxGpuFaults) {
        worker->set_state(v1::WORKER_STATE_SICK);
        spdlog::warn("{} gets no more trials: its GPU failed {} times, the last time: {}", request.worker(),
                     worker->host_faults(), Shortened(request.host_fault().message(), 200));
      }
      SetTime(step->now, worker->mutable_last_seen());
      step->writes.workers.push_back({request.instance(), *worker});
    }
    leases_.Lose(step, key, fault ? v1::LeaseLost::HOST_FAULT : v1::LeaseLost::GIVEN_BACK,
                 fault ? Shortened(request.host_fault().message(), 2000) : "the worker drains");
  }
  return absl::OkStatus();
}

}  // namespace pawl
