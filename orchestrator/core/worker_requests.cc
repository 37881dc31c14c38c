// What workers ask of the orchestrator.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/faults/fault_point.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "orchestrator/security/tokens.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr double kMaxWaitSeconds = 60;
constexpr size_t kMaxBlob = 4 << 20;
constexpr int kMaxSamples = 1000;
constexpr int kMaxGpuFaults = 2;  // of a worker's process
// Results in one transaction: whoever waits for the lock waits for all of them.
constexpr size_t kMaxTogether = 64;

absl::Status LeaseError(absl::StatusCode code, const std::string& message, const std::string& trial) {
  v1::ErrorDetail detail;
  detail.set_resource(trial);
  detail.set_fix("drop the trial and lease another");
  return Error(code, message, detail);
}

absl::Status Sick(const std::string& worker) {
  v1::ErrorDetail detail;
  detail.set_resource(worker);
  detail.set_fix("look at the GPU (nvidia-smi, dmesg), then start the worker anew");
  return Error(absl::StatusCode::kFailedPrecondition, "the worker's GPU failed twice: it gets no more trials", detail);
}

absl::Status CheckPairs(const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs) {
  if (pairs.size() > kMaxSamples) return BadField("result.pairs", "expected at most 1000");
  for (const v1::PairSample& pair : pairs) {
    const double ratio = std::log(pair.parent_us() / pair.candidate_us());
    if (!(pair.parent_us() > 0 && pair.candidate_us() > 0) || !std::isfinite(ratio)) {
      return BadField("result.pairs", "a time is no number above 0");
    }
    if (!(std::abs(pair.log_ratio() - ratio) < 1e-6)) {
      return BadField("result.pairs", "a log_ratio is not that of its times");
    }
  }
  return absl::OkStatus();
}

// What no honest worker sends.
absl::Status CheckResult(const v1::TrialResult& result) {
  if (absl::Status status = CheckPairs(result.pairs()); !status.ok()) return status;
  if (absl::Status status = CheckPairs(result.confirming_pairs()); !status.ok()) return status;
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (!std::isfinite(baseline.graph_us()) || baseline.graph_us() < 0) {
      return BadField("result.baselines", "a time is no number of 0 or more");
    }
  }
  for (const v1::StageTime& stage : result.stages()) {
    if (!std::isfinite(stage.seconds()) || stage.seconds() < 0) {
      return BadField("result.stages", "expected seconds that are 0 or more");
    }
  }
  for (const double us : {result.warm_us(), result.cold_us(), result.parent_warm_us(), result.parent_cold_us()}) {
    if (!std::isfinite(us) || us < 0) return BadField("result", "a time is no number of 0 or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::RegisterWorkerResponse> Orchestrator::Register(const v1::RegisterWorkerRequest& request) {
  return Locked([&](After* after) -> absl::StatusOr<v1::RegisterWorkerResponse> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    Step step = Begin();
    absl::StatusOr<StoredWorker> worker = workers_.Register(request, step.now);
    if (!worker.ok()) return worker.status();
    const v1::Worker* before = workers_.Find(request.name());
    if (before != nullptr && worker->worker.trials().empty()) {
      const std::vector<std::string> held(before->trials().begin(), before->trials().end());
      for (const std::string& name : held) {
        const std::optional<NameInCampaign> trial = ParseTrialName(name);
        if (!trial || !deadlines_.contains({trial->campaign, trial->number})) continue;
        Lose(&step, {trial->campaign, trial->number}, v1::LeaseLost::EXPIRED, "another process took the worker's name");
      }
    }
    step.writes.workers.push_back(*worker);
    workers_.Put(*worker, step.now);
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    spdlog::info("{} registered: {}", request.name(), request.device().label());
    v1::RegisterWorkerResponse response;
    response.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
    response.set_renew_seconds(absl::ToDoubleSeconds(options_.renew));
    return response;
  });
}

uint64_t Orchestrator::Lease(const v1::LeaseTrialRequest& request, LeaseAnswer answer) {
  uint64_t id = 0;
  absl::StatusOr<v1::LeaseTrialResponse> at_once = Locked([&](After* after) -> absl::StatusOr<v1::LeaseTrialResponse> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    if (!leasing_) return TryLater("the orchestrator shuts down", 1);
    Step step = Begin();
    if (absl::Status status = workers_.Hear(request.worker(), request.instance(), step.now); !status.ok())
      return status;
    if (!(request.wait_seconds() >= 0 && request.wait_seconds() <= kMaxWaitSeconds)) {
      return BadField("wait_seconds", "expected 0 to 60");
    }
    if (workers_.Find(request.worker())->state() == v1::WORKER_STATE_DRAINING) {
      return LeaseError(absl::StatusCode::kFailedPrecondition, "the worker is draining", request.worker());
    }
    if (workers_.Find(request.worker())->state() == v1::WORKER_STATE_SICK) return Sick(request.worker());
    v1::LeaseTrialResponse response;
    if (TakeTrial(&step, request.worker(), &response)) {
      if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    } else if (request.wait_seconds() > 0) {
      id = next_waiting_++;
      waiting_[id] = {request.worker(), request.instance(), step.now + absl::Seconds(request.wait_seconds()), answer};
    }
    return response;
  });
  if (id == 0) answer(std::move(at_once));
  return id;
}

void Orchestrator::Forget(uint64_t waiting) {
  std::lock_guard lock(mutex_);
  waiting_.erase(waiting);
}

absl::StatusOr<v1::RenewLeaseResponse> Orchestrator::Renew(const v1::RenewLeaseRequest& request) {
  v1::Progress progress = request.progress();
  int64_t campaign = 0;
  {
    std::lock_guard lock(mutex_);
    if (absl::Status status = Serving(); !status.ok()) return status;
    const absl::Time now = clock_();
    if (absl::Status status = workers_.Hear(request.worker(), request.instance(), now); !status.ok()) return status;
    const std::optional<LeaseName> lease = ReadLeaseToken(store_.secret(), request.lease(), request.worker());
    if (!lease) return LeaseError(absl::StatusCode::kPermissionDenied, "the lease is not this worker's", "");
    const std::string trial = TrialName(lease->campaign, lease->trial);
    v1::RenewLeaseResponse response;
    const auto found = campaigns_.find(lease->campaign);
    if (found == campaigns_.end() || !found->second->open_trials().contains(lease->trial)) {
      response.set_stop(true);  // it has a result, or its campaign has ended
      return response;
    }
    const OpenTrial& open = found->second->open_trials().at(lease->trial);
    if (open.attempt != lease->attempt) {
      return LeaseError(absl::StatusCode::kAborted,
                        absl::StrCat("the lease of ", trial, " ran out and it was leased again"), trial);
    }
    // Where it ran out and nobody else has the trial yet, the result is still welcome.
    if (open.worker == request.worker()) deadlines_[{lease->campaign, lease->trial}] = now + options_.lease;
    response.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
    if (!request.has_progress()) return response;
    campaign = lease->campaign;
    progress.set_trial(trial);
    progress.set_iteration(IterationName(campaign, open.planned.iteration()));
    progress.set_worker(request.worker());
  }
  hub_.Show(campaign, progress);
  v1::RenewLeaseResponse response;
  response.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  return response;
}

void Orchestrator::Complete(const v1::CompleteTrialRequest& request, CompleteAnswer answer) {
  if (absl::Status status = CheckResult(request.result()); !status.ok()) return answer(status);
  {
    std::lock_guard lock(completions_mutex_);
    completions_.push_back({&request, std::move(answer)});
  }
  completion_arrived_.notify_one();
}

void Orchestrator::WorkOffCompletions() {
  while (true) {
    std::vector<Completion> together;
    {
      std::unique_lock lock(completions_mutex_);
      completion_arrived_.wait(lock, [this] { return ending_ || !completions_.empty(); });
      if (completions_.empty()) return;  // and not before: everyone is answered
      while (!completions_.empty() && together.size() < kMaxTogether) {
        together.push_back(std::move(completions_.front()));
        completions_.pop_front();
      }
    }
    CompleteTogether(together);
  }
}

void Orchestrator::CompleteTogether(const std::vector<Completion>& together) {
  std::vector<absl::StatusOr<v1::CompleteTrialResponse>> answers(together.size(), v1::CompleteTrialResponse());
  const absl::Status committed = Locked([&](After* after) -> absl::Status {
    if (absl::Status status = Serving(); !status.ok()) return status;
    Step step = Begin();
    for (size_t i = 0; i < together.size(); ++i) {
      if (absl::Status status = CompleteOne(&step, *together[i].request); !status.ok()) answers[i] = status;
    }
    Pass(FaultPoint::kAfterResult);
    Plan(&step);
    for (size_t i = 0; i < together.size(); ++i) {
      const v1::CompleteTrialRequest& request = *together[i].request;
      if (!answers[i].ok() || !request.lease_next()) continue;
      if (!TakeTrial(&step, request.worker(), answers[i]->mutable_next())) answers[i]->clear_next();
    }
    return Commit(&step, after);
  });
  // Where nothing was written no answer holds: what was refused may have been for what another had just delivered.
  for (size_t i = 0; i < together.size(); ++i) {
    together[i].answer(committed.ok() ? std::move(answers[i]) : absl::StatusOr<v1::CompleteTrialResponse>(committed));
  }
}

absl::Status Orchestrator::CompleteOne(Step* step, const v1::CompleteTrialRequest& request) {
  if (absl::Status status = workers_.Hear(request.worker(), request.instance(), step->now); !status.ok()) {
    return status;
  }
  const std::optional<LeaseName> lease = ReadLeaseToken(store_.secret(), request.lease(), request.worker());
  if (!lease) return LeaseError(absl::StatusCode::kPermissionDenied, "the lease is not this worker's", "");
  const TrialKey key{lease->campaign, lease->trial};
  const std::string trial = TrialName(lease->campaign, lease->trial);
  const auto found = campaigns_.find(lease->campaign);
  if (found == campaigns_.end() || !found->second->open_trials().contains(lease->trial)) {
    absl::StatusOr<v1::Campaign> stored = Stored(lease->campaign);
    if (!stored.ok()) return stored.status();
    if (stored->state() == v1::CANCELLED) {
      return LeaseError(absl::StatusCode::kFailedPrecondition, absl::StrCat(stored->name(), " was cancelled"), trial);
    }
    return LeaseError(absl::StatusCode::kAlreadyExists, absl::StrCat(trial, " has its result already"), trial);
  }
  CampaignState& campaign = *found->second;
  const OpenTrial& open = campaign.open_trials().at(lease->trial);  // until an event is added
  if (open.attempt != lease->attempt) {
    return LeaseError(absl::StatusCode::kAborted,
                      absl::StrCat("the lease of ", trial, " ran out and it was leased again"), trial);
  }
  if (request.outcome_case() == v1::CompleteTrialRequest::OUTCOME_NOT_SET) {
    return BadField("outcome", "expected a result, a host fault, or given_back");
  }
  v1::Worker* worker = workers_.Mutable(request.worker());
  if (request.has_result()) {
    for (const v1::Blob& blob : request.result().blobs()) {
      absl::StatusOr<bool> there = store_.HasBlob(blob.hash());
      if (!there.ok()) return there.status();
      if (!*there) {
        return LeaseError(absl::StatusCode::kFailedPrecondition,
                          absl::StrCat("the blob ", blob.hash(), " was not uploaded"), trial);
      }
    }
    v1::Event event;
    v1::TrialFinished& finished = *event.mutable_finished();
    finished.set_trial(lease->trial);
    finished.set_attempt(lease->attempt);
    finished.set_worker(request.worker());
    *finished.mutable_result() = request.result();
    if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) {
      absl::StatusOr<std::optional<v1::Iteration>> recorded =
          store_.GetIteration(lease->campaign, open.planned.iteration());
      if (!recorded.ok()) return recorded.status();
      if (*recorded) {
        *finished.mutable_verification() = Compare(**recorded, request.result(), campaign.bundle());
      }
    } else if (open.planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      *finished.mutable_total_gain() = JudgeTotal(campaign, open.planned, request.result());
    } else {
      v1::Iteration& iteration = *finished.mutable_iteration();
      iteration = Judge(campaign, open.planned, request.result(), options_.profiles->gates,
                        ExpectedBaseline(campaign, request.result()));
      iteration.set_worker(request.worker());
      SetTime(open.planned_at, iteration.mutable_create_time());
      SetTime(step->now, iteration.mutable_end_time());
    }
    deadlines_.erase(key);
    auto* trials = worker->mutable_trials();
    trials->erase(std::remove(trials->begin(), trials->end(), trial), trials->end());
    worker->set_completed(worker->completed() + 1);
    Add(step, &campaign, std::move(event));
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
    Lose(step, key, fault ? v1::LeaseLost::HOST_FAULT : v1::LeaseLost::GIVEN_BACK,
         fault ? Shortened(request.host_fault().message(), 2000) : "the worker drains");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::PutBlobResponse> Orchestrator::PutBlob(const v1::PutBlobRequest& request) {
  if (request.content().size() > kMaxBlob) {
    v1::ErrorDetail detail;
    detail.set_field("content");
    detail.set_fix("leave it out and note so in the result");
    return Error(absl::StatusCode::kResourceExhausted, "a blob has at most 4 MB", detail);
  }
  if (!v1::Blob::Kind_IsValid(request.kind()) || request.kind() == v1::Blob::KIND_UNSPECIFIED ||
      request.kind() == v1::Blob::BUNDLE) {
    return BadField("kind", "expected source, log, cubin or ncu report");
  }
  if (Sha256(request.content()) != request.hash()) return BadField("hash", "it is not the content's SHA-256");
  const absl::Status status = Locked([&](After* after) -> absl::Status {
    if (absl::Status serving = Serving(); !serving.ok()) return serving;
    Step step = Begin();
    step.writes.blobs.push_back({request.kind(), request.hash(), request.content()});
    return Commit(&step, after);
  });
  if (!status.ok()) return status;
  return v1::PutBlobResponse();
}

absl::StatusOr<v1::DrainWorkerResponse> Orchestrator::Drain(const v1::DrainWorkerRequest& request) {
  const absl::Status status = Locked([&](After* after) -> absl::Status {
    if (absl::Status serving = Serving(); !serving.ok()) return serving;
    Step step = Begin();
    if (absl::Status heard = workers_.Hear(request.worker(), request.instance(), step.now); !heard.ok()) return heard;
    v1::Worker* worker = workers_.Mutable(request.worker());
    if (request.gone()) {
      const std::vector<std::string> trials(worker->trials().begin(), worker->trials().end());
      for (const std::string& name : trials) {
        const std::optional<NameInCampaign> trial = ParseTrialName(name);
        if (!trial || !deadlines_.contains({trial->campaign, trial->number})) continue;
        Lose(&step, {trial->campaign, trial->number}, v1::LeaseLost::GIVEN_BACK, "the worker has gone");
      }
    }
    // Whoever looks for a sick one should find it, also after its process has ended.
    const bool sick = worker->state() == v1::WORKER_STATE_SICK;
    if (!sick) worker->set_state(request.gone() ? v1::WORKER_STATE_GONE : v1::WORKER_STATE_DRAINING);
    SetTime(step.now, worker->mutable_last_seen());
    step.writes.workers.push_back({request.instance(), *worker});
    spdlog::info("{} {}", request.worker(), request.gone() ? "has gone" : "drains");
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (it->second.worker != request.worker()) {
        ++it;
        continue;
      }
      after->push_back([answer = std::move(it->second.answer)] { answer(v1::LeaseTrialResponse()); });
      it = waiting_.erase(it);
    }
    return Commit(&step, after);
  });
  if (!status.ok()) return status;
  return v1::DrainWorkerResponse();
}

}  // namespace pawl
