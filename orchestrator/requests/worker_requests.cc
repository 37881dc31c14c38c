// What workers ask, beside delivering results (trial_results.cc).
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/security/tokens.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr double kMaxWaitSeconds = 60;
constexpr size_t kMaxBlob = 4 << 20;

absl::Status Sick(const std::string& worker) {
  v1::ErrorDetail detail;
  detail.set_resource(worker);
  detail.set_fix("check the GPU (nvidia-smi, dmesg), then restart the worker");
  return Error(absl::StatusCode::kFailedPrecondition, "the worker's GPU failed twice: it gets no more trials", detail);
}

}  // namespace

absl::StatusOr<v1::RegisterWorkerResponse> Orchestrator::Register(const v1::RegisterWorkerRequest& request) {
  Turn turn(&mutex_);
  if (absl::Status status = WriteResults(turn.deferred()); !status.ok()) return status;  // leases may be lost
  Step step = Begin();
  absl::StatusOr<StoredWorker> worker = state_.workers.Register(request, step.now);
  if (!worker.ok()) return worker.status();
  const v1::Worker* before = state_.workers.Find(request.name());
  if (before != nullptr && worker->worker.trials().empty()) {
    leases_.LoseAllOf(&step, *before, v1::LeaseLost::EXPIRED, "another process took the worker's name");
  }
  step.writes.workers.push_back(*worker);
  state_.workers.Put(*worker, step.now);
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  spdlog::info("{} registered: {}", request.name(), request.device().label());
  v1::RegisterWorkerResponse response;
  response.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  response.set_renew_seconds(absl::ToDoubleSeconds(options_.renew));
  return response;
}

uint64_t Orchestrator::Lease(const v1::LeaseTrialRequest& request, LeaseAnswer answer) {
  uint64_t waiting = 0;
  absl::StatusOr<v1::LeaseTrialResponse> at_once = LeaseOrWait(request, answer, &waiting);
  if (waiting == 0) answer(std::move(at_once));
  return waiting;
}

absl::StatusOr<v1::LeaseTrialResponse> Orchestrator::LeaseOrWait(const v1::LeaseTrialRequest& request,
                                                                 const LeaseAnswer& answer, uint64_t* waiting) {
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) return status;
  if (!state_.leasing) return TryLater("the orchestrator shuts down", 1);
  Step step = Begin();
  if (absl::Status status = state_.workers.Hear(request.worker(), request.instance(), step.now); !status.ok()) {
    return status;
  }
  if (!(request.wait_seconds() >= 0 && request.wait_seconds() <= kMaxWaitSeconds)) {
    return BadField("wait_seconds", "expected 0 to 60");
  }
  const v1::WorkerState worker = state_.workers.Find(request.worker())->state();
  if (worker == v1::WORKER_STATE_DRAINING) {
    return LeaseError(absl::StatusCode::kFailedPrecondition, "the worker is draining", request.worker());
  }
  if (worker == v1::WORKER_STATE_SICK) return Sick(request.worker());
  v1::LeaseTrialResponse response;
  scheduler_.NoteLimits(&step);
  if (scheduler_.TakeTrial(&step, request.worker(), &response)) {
    if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  } else if (request.wait_seconds() > 0) {
    *waiting = state_.next_waiting++;
    state_.waiting[*waiting] = {request.worker(), request.instance(), step.now + absl::Seconds(request.wait_seconds()),
                                answer};
  }
  return response;
}

void Orchestrator::Forget(uint64_t waiting) {
  absl::MutexLock lock(&mutex_);
  state_.waiting.erase(waiting);
}

absl::StatusOr<v1::RenewLeaseResponse> Orchestrator::Renew(const v1::RenewLeaseRequest& request) {
  v1::Progress progress = request.progress();
  int64_t campaign = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = Serving(); !status.ok()) return status;
    const absl::Time now = clock_();
    if (absl::Status status = state_.workers.Hear(request.worker(), request.instance(), now); !status.ok())
      return status;
    const std::optional<LeaseName> lease = ReadLeaseToken(store_.secret(), request.lease(), request.worker());
    if (!lease) return LeaseError(absl::StatusCode::kPermissionDenied, "the lease is not this worker's", "");
    const std::string trial = TrialName(lease->campaign, lease->trial);
    v1::RenewLeaseResponse response;
    const auto found = state_.campaigns.find(lease->campaign);
    if (found == state_.campaigns.end() || !found->second->open_trials().contains(lease->trial)) {
      response.set_stop(true);  // it has a result, or its campaign has ended
      return response;
    }
    const OpenTrial& open = found->second->open_trials().at(lease->trial);
    if (open.attempt != lease->attempt) {
      return LeaseError(absl::StatusCode::kAborted,
                        absl::StrCat("the lease of ", trial, " ran out and it was leased again"), trial);
    }
    if (open.nonce != lease->nonce) return OtherCopy(trial);
    // Where it ran out and nobody else has the trial yet, the result is still welcome.
    if (open.worker == request.worker()) leases_.Renew({lease->campaign, lease->trial}, request.worker());
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
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) return status;
  Step step = Begin();
  step.writes.blobs.push_back({request.kind(), request.hash(), request.content()});
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return v1::PutBlobResponse();
}

absl::StatusOr<v1::DrainWorkerResponse> Orchestrator::Drain(const v1::DrainWorkerRequest& request) {
  Turn turn(&mutex_);
  if (absl::Status status = WriteResults(turn.deferred()); !status.ok()) return status;  // leases may be lost
  Step step = Begin();
  if (absl::Status status = state_.workers.Hear(request.worker(), request.instance(), step.now); !status.ok()) {
    return status;
  }
  v1::Worker* worker = state_.workers.Mutable(request.worker());
  if (request.gone()) leases_.LoseAllOf(&step, *worker, v1::LeaseLost::GIVEN_BACK, "the worker has gone");
  // A sick worker stays listed as sick, also after its process has ended.
  const bool sick = worker->state() == v1::WORKER_STATE_SICK;
  if (!sick) worker->set_state(request.gone() ? v1::WORKER_STATE_GONE : v1::WORKER_STATE_DRAINING);
  SetTime(step.now, worker->mutable_last_seen());
  step.writes.workers.push_back({request.instance(), *worker});
  spdlog::info("{} {}", request.worker(), request.gone() ? "has gone" : "drains");
  scheduler_.EndWaitsOf(request.worker(), turn.deferred());
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return v1::DrainWorkerResponse();
}

}  // namespace pawl
