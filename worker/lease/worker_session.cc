#include "worker/lease/worker_session.h"

#include <spdlog/spdlog.h>

#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/faults/fault_point.h"
#include "base/hash/hash.h"
#include "base/messages/valid_texts.h"

namespace pawl {
namespace {

constexpr size_t kMaxBlobBytes = 4 << 20;
constexpr size_t kMaxBundles = 32;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// Not the orchestrator's own verdict, as worker_service.proto lists them: nobody knows whether the call arrived, so it
// is tried again. gRPC says CANCELLED when a server shuts down in mid-call, INTERNAL or UNKNOWN when a connection
// breaks.
bool IsUnanswered(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDataLoss:       // what it has stored can't be read
    case absl::StatusCode::kUnimplemented:  // an orchestrator of another version
      return false;
    default:
      return true;
  }
}

absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

void AddNote(const std::string& note, v1::TrialResult* result) {
  result->set_notes(result->notes().empty() ? note : absl::StrCat(result->notes(), "; ", note));
}

// An orchestrator refuses numbers that are not finite. A candidate's wrong output, or a profiler's ratio of nothing, is
// no reason to lose its result; a time that is not finite is.
void MakeFinite(v1::TrialResult* result) {
  const auto finite = [](double value) {
    return std::isfinite(value) ? value : std::copysign(std::numeric_limits<double>::max(), value);
  };
  for (v1::OutputError& error : *result->mutable_errors()) {
    error.set_max_absolute(finite(error.max_absolute()));
    error.set_mean_absolute(finite(error.mean_absolute()));
    error.set_relative(finite(error.relative()));
    error.set_got(finite(error.got()));
    error.set_expected(finite(error.expected()));
  }
  if (!result->has_evidence()) return;
  int left_out = 0;
  for (v1::LaunchEvidence& launch : *result->mutable_evidence()->mutable_launches()) {
    auto& metrics = *launch.mutable_metrics();
    for (auto metric = metrics.begin(); metric != metrics.end();) {
      const bool keep = std::isfinite(metric->second);
      left_out += !keep;
      metric = keep ? std::next(metric) : metrics.erase(metric);
    }
  }
  if (left_out > 0) AddNote(absl::StrCat(left_out, " metrics left out: not finite"), result);
}

}  // namespace

WorkerSession::WorkerSession(WorkerClient& client, const v1::Device& device, SessionOptions options)
    : client_(client), device_(device), options_(std::move(options)) {}

std::string WorkerSession::Orchestrator() const {
  return options_.orchestrator.empty() ? "the orchestrator"
                                       : absl::StrCat("the orchestrator at ", options_.orchestrator);
}

template <typename Request>
Request WorkerSession::Signed() const {
  Request request;
  request.set_worker(options_.name);
  request.set_instance(options_.instance);
  return request;
}

void WorkerSession::Wait(Backoff::Duration duration, const GiveUp& give_up) {
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(absl::Seconds(duration.count()));
  absl::MutexLock lock(&mutex_);
  while (!give_up() && wake_.WaitUntil(&mutex_, until)) {
  }
}

void WorkerSession::Wake() {
  absl::MutexLock lock(&mutex_);  // a Wait that has just asked `give_up` sleeps by now, and is woken
  wake_.SignalAll();
}

template <typename Call>
auto WorkerSession::TryUntilAnswered(const char* what, const GiveUp& give_up, const Call& call) -> decltype(call()) {
  Backoff backoff(options_.shortest_backoff, options_.longest_backoff);
  bool said = false, registered_again = false;
  for (;;) {
    auto answer = call();
    const absl::Status status = StatusOf(answer);
    if (status.ok()) {
      if (said) spdlog::info("{}: {} answers again", what, Orchestrator());
      return answer;
    }
    if (absl::IsNotFound(status) && !registered_again) {
      // The worker may be what was not found. If it is something else, the second answer says so again.
      const absl::Status again = RegisterAgain();
      registered_again = again.ok();
      if (again.ok()) continue;
      if (!IsUnanswered(again)) return again;
    } else if (!IsUnanswered(status)) {
      return answer;
    }
    if (give_up()) return absl::CancelledError(absl::StrCat("given up: ", MessageOf(status)));
    if (!said) spdlog::warn("{}: {} does not answer ({}); retrying", what, Orchestrator(), MessageOf(status));
    said = true;
    Wait(backoff.Next(), give_up);
  }
}

absl::Status WorkerSession::RegisterOnce() {
  if (left_) return absl::FailedPreconditionError("this worker has left");
  v1::RegisterWorkerRequest request;
  request.set_name(options_.name);
  request.set_instance(options_.instance);
  request.set_version(options_.version);
  request.set_protocol(v1::WorkerProtocol_MAX);
  *request.mutable_device() = device_;
  absl::StatusOr<v1::RegisterWorkerResponse> response = client_.Register(request);
  if (!response.ok()) return response.status();
  registered_ = true;
  if (response->renew_seconds() > 0) renew_seconds_ = response->renew_seconds();
  return absl::OkStatus();
}

absl::Status WorkerSession::RegisterAgain() {
  absl::Status status = RegisterOnce();
  if (status.ok()) spdlog::info("{} registered again", options_.name);
  return status;
}

absl::Status WorkerSession::Register(const GiveUp& give_up) {
  const HeldTrial::Clock::time_point begin = HeldTrial::Clock::now();
  for (;;) {
    absl::Status status = TryUntilAnswered("register", give_up, [this] { return RegisterOnce(); });
    const bool patient = HeldTrial::Clock::now() - begin < options_.patience;
    if (status.ok()) spdlog::info("{} registered with {}: {}", options_.name, Orchestrator(), device_.label());
    if (status.ok() || absl::IsCancelled(status)) return status;
    if (!absl::IsAlreadyExists(status) || !patient || give_up()) {
      return absl::Status(status.code(),
                          absl::StrCat("registration with ", Orchestrator(), " rejected: ", MessageOf(status)));
    }
    spdlog::warn("{}: {}; retrying", options_.name, MessageOf(status));
    Wait(std::min(Backoff::Duration(2), options_.longest_backoff), give_up);
  }
}

// What a single try ended with, for a caller that retries.
absl::Status WorkerSession::Retried(absl::Status status) {
  if (absl::IsNotFound(status)) {
    absl::Status again = RegisterAgain();
    if (!again.ok()) status = std::move(again);
  }
  return IsUnanswered(status) || absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
}

absl::StatusOr<v1::LeaseTrialResponse> WorkerSession::Lease(double wait_seconds) {
  auto request = Signed<v1::LeaseTrialRequest>();
  request.set_wait_seconds(wait_seconds);
  absl::StatusOr<v1::LeaseTrialResponse> response = client_.Lease(request);
  if (!response.ok()) return Retried(response.status());
  return response;
}

absl::StatusOr<v1::RenewLeaseResponse> WorkerSession::Renew(const HeldTrial& held) {
  auto request = Signed<v1::RenewLeaseRequest>();
  request.set_lease(held.lease());
  *request.mutable_progress() = held.Latest();
  request.mutable_progress()->set_worker(options_.name);
  absl::StatusOr<v1::RenewLeaseResponse> response = client_.Renew(request);
  if (!response.ok()) return Retried(response.status());
  return response;
}

absl::StatusOr<std::shared_ptr<const v1::Bundle>> WorkerSession::GetBundle(const std::string& hash,
                                                                           const GiveUp& give_up) {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto found = bundles_.find(hash); found != bundles_.end()) return found->second;
  }
  absl::StatusOr<v1::Bundle> fetched = TryUntilAnswered("bundle", give_up, [&] { return client_.GetBundle(hash); });
  if (!fetched.ok()) return fetched.status();
  auto bundle = std::make_shared<const v1::Bundle>(*std::move(fetched));
  absl::MutexLock lock(&mutex_);
  if (bundles_.size() >= kMaxBundles) bundles_.clear();
  bundles_[hash] = bundle;
  return bundle;
}

void WorkerSession::PutArtifacts(std::vector<Artifact> artifacts, v1::TrialResult* result, const GiveUp& give_up) {
  for (Artifact& artifact : artifacts) {
    const std::string kind = v1::Blob::Kind_Name(artifact.kind);
    if (artifact.content.size() > kMaxBlobBytes) {
      AddNote(absl::StrCat(kind, " of ", artifact.content.size() >> 20, " MB left out: over 4 MB"), result);
      continue;
    }
    v1::PutBlobRequest request;
    request.set_kind(artifact.kind);
    request.set_hash(Sha256(artifact.content));
    request.set_content(std::move(artifact.content));
    const absl::Status put = TryUntilAnswered("blob", give_up, [&] { return client_.PutBlob(request); });
    if (!put.ok()) {
      AddNote(absl::StrCat(kind, " left out: ", put.message()), result);
      continue;
    }
    Pass(FaultPoint::kMidUpload);
    v1::Blob* blob = result->add_blobs();
    blob->set_kind(artifact.kind);
    blob->set_hash(request.hash());
    blob->set_bytes(static_cast<int64_t>(request.content().size()));
  }
}

absl::StatusOr<v1::CompleteTrialResponse> WorkerSession::Complete(const HeldTrial& held,
                                                                  v1::CompleteTrialRequest request,
                                                                  const GiveUp& give_up) {
  request.set_worker(options_.name);
  request.set_instance(options_.instance);
  request.set_lease(held.lease());
  if (request.has_result()) {
    request.set_bundle_hash(held.trial().bundle_hash());
    *request.mutable_variant() = held.trial().variant();
    if (held.trial().has_parent()) *request.mutable_parent() = held.trial().parent();
    MakeFinite(request.mutable_result());
  }
  MakeTextsValid(&request);
  absl::StatusOr<v1::CompleteTrialResponse> response =
      TryUntilAnswered(held.what().c_str(), give_up, [&] { return client_.Complete(request); });
  if (absl::IsAlreadyExists(response.status())) return v1::CompleteTrialResponse();  // an earlier try arrived
  return response;
}

absl::Status WorkerSession::Leave(bool gone) {
  if (!registered_ || left_) return absl::OkStatus();
  auto request = Signed<v1::DrainWorkerRequest>();
  request.set_gone(gone);
  if (gone) left_ = true;
  absl::Status status = client_.Drain(request);
  // Draining may be overtaken by the end of the trial that ran, which says that the worker has gone.
  return absl::IsNotFound(status) && left_ ? absl::OkStatus() : status;
}

}  // namespace pawl
