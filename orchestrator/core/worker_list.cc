#include "orchestrator/core/worker_list.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {
namespace {

bool IsWorkerName(const std::string& name) {
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "workers/") || rest.empty() || rest.size() > 100) return false;
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

absl::Status OtherProtocol(const v1::RegisterWorkerRequest& request) {
  v1::ErrorDetail detail;
  detail.set_resource(request.name());
  detail.set_fix("install the same version of Pawl for the orchestrator and the worker");
  return Error(absl::StatusCode::kFailedPrecondition,
               absl::StrCat(request.name(), " is Pawl ", request.version().empty() ? "unknown" : request.version(),
                            " with worker protocol ", request.protocol(),
                            ", this orchestrator is Pawl " PAWL_VERSION " with worker protocol ",
                            v1::WorkerProtocol_MAX, ": they do not work together"),
               detail);
}

// A replay lists what it has as HASH@SIZE; HASH alone is every size.
absl::Status WasRecorded(const v1::Device& device, const v1::Campaign& campaign, const std::string& space_hash) {
  std::set<std::string> missing;
  for (const auto& [size, weight] : campaign.spec().goal().sizes()) missing.insert(size);
  if (missing.empty()) missing.insert(campaign.spec().goal().size());
  std::vector<std::string> others;
  for (const std::string& served : device.bundle_hashes()) {
    absl::string_view rest = served;
    if (!absl::ConsumePrefix(&rest, space_hash)) continue;
    if (rest.empty()) return absl::OkStatus();
    if (!absl::ConsumePrefix(&rest, "@")) continue;
    missing.erase(std::string(rest));
    others.push_back(std::string(rest));
  }
  if (missing.empty()) return absl::OkStatus();
  const std::string at = others.empty() ? ""
                                        : absl::StrCat(" at size ", absl::StrJoin(missing, ", "), ", only at ",
                                                       absl::StrJoin(others, ", "));
  return absl::FailedPreconditionError(
      absl::StrCat("there is no recording of this ", campaign.bundle(), at, " (pawl record makes one on a GPU)"));
}

}  // namespace

void WorkerList::Load(const std::vector<StoredWorker>& stored, absl::Time now) {
  workers_.clear();
  // One that was gone stays gone; the others have until they are silent for too long. What they hold, campaigns know.
  for (const StoredWorker& worker : stored) {
    const bool gone = worker.worker.state() == v1::WORKER_STATE_GONE;
    Entry& entry = workers_[worker.worker.name()];
    entry = {worker.instance, worker.worker, gone ? absl::InfinitePast() : now, /*heard=*/false};
    entry.worker.clear_trials();
  }
}

std::vector<std::string> WorkerList::RemoveOld(absl::Time before) {
  std::vector<std::string> old;
  for (const auto& [name, entry] : workers_) {
    if (entry.worker.trials().empty() && TimeOf(entry.worker.last_seen()) < before) old.push_back(name);
  }
  for (const std::string& name : old) workers_.erase(name);
  return old;
}

absl::StatusOr<StoredWorker> WorkerList::Register(const v1::RegisterWorkerRequest& request, absl::Time now) const {
  if (!IsWorkerName(request.name())) {
    return BadField("name", "expected workers/ and then letters, digits, - _ or .");
  }
  if (request.instance().empty() || request.instance().size() > 100) {
    return BadField("instance", "expected 1 to 100 characters");
  }
  if (request.device().label().empty() || request.device().kind() == v1::DEVICE_KIND_UNSPECIFIED) {
    return BadField("device", "expected a kind and a label");
  }
  if (request.protocol() != v1::WorkerProtocol_MAX) return OtherProtocol(request);
  const auto before = workers_.find(request.name());
  const bool sick = before != workers_.end() && before->second.worker.state() == v1::WORKER_STATE_SICK;
  const bool ended = sick && before->second.worker.trials().empty();  // it has nothing left to do
  if (before != workers_.end() && before->second.instance != request.instance() && !ended &&
      !Gone(request.name(), now)) {
    // Nobody knows yet whether the other process is there: an orchestrator that is started again and again must not
    // make the new one give up.
    if (!before->second.heard) {
      return TryLater(absl::StrCat("another process was registered as ", request.name(),
                                   " before the orchestrator started, and may still be there"),
                      absl::ToDoubleSeconds(silence_));
    }
    v1::ErrorDetail detail;
    detail.set_resource(request.name());
    detail.set_fix("give this worker another --name, or stop the other one");
    detail.set_retry_after_seconds(absl::ToDoubleSeconds(silence_));
    return Error(absl::StatusCode::kAlreadyExists, absl::StrCat("another process is registered as ", request.name()),
                 detail);
  }
  StoredWorker stored;
  stored.instance = request.instance();
  stored.worker.set_name(request.name());
  *stored.worker.mutable_device() = request.device();
  stored.worker.set_state(v1::WORKER_STATE_IDLE);
  stored.worker.set_version(request.version());
  SetTime(now, stored.worker.mutable_register_time());
  SetTime(now, stored.worker.mutable_last_seen());
  if (before != workers_.end() && before->second.instance == request.instance()) {
    *stored.worker.mutable_trials() = before->second.worker.trials();
    stored.worker.set_completed(before->second.worker.completed());
    stored.worker.set_host_faults(before->second.worker.host_faults());
    if (sick) stored.worker.set_state(v1::WORKER_STATE_SICK);  // the same process has the same GPU
  }
  return stored;
}

void WorkerList::Put(const StoredWorker& worker, absl::Time now) {
  workers_[worker.worker.name()] = {worker.instance, worker.worker, now};
}

absl::Status WorkerList::Hear(const std::string& name, const std::string& instance, absl::Time now) {
  const auto found = workers_.find(name);
  if (found == workers_.end() || found->second.instance != instance ||
      found->second.worker.state() == v1::WORKER_STATE_GONE) {
    return NoSuch(name.empty() ? "worker" : name, "register the worker, then ask again");
  }
  found->second.last_seen = now;
  found->second.heard = true;
  return absl::OkStatus();
}

const v1::Worker* WorkerList::Find(const std::string& name) const {
  const auto found = workers_.find(name);
  return found == workers_.end() ? nullptr : &found->second.worker;
}

v1::Worker* WorkerList::Mutable(const std::string& name) { return const_cast<v1::Worker*>(Find(name)); }

bool WorkerList::Gone(const std::string& name, absl::Time now) const {
  const auto found = workers_.find(name);
  return found == workers_.end() || found->second.worker.state() == v1::WORKER_STATE_GONE ||
         now - found->second.last_seen > silence_;
}

bool WorkerList::HeardWithin(absl::Duration time, const std::string& name, absl::Time now) const {
  const auto found = workers_.find(name);
  return found != workers_.end() && !Gone(name, now) && now - found->second.last_seen <= time;
}

v1::WorkerState WorkerList::StateOf(const Entry& entry, absl::Time now) const {
  const v1::WorkerState state = entry.worker.state();
  if (state == v1::WORKER_STATE_SICK) return state;
  if (Gone(entry.worker.name(), now)) return v1::WORKER_STATE_GONE;
  return state == v1::WORKER_STATE_IDLE && !entry.worker.trials().empty() ? v1::WORKER_STATE_BUSY : state;
}

std::vector<std::pair<std::string, v1::WorkerState>> WorkerList::LabelsAndStates(absl::Time now) const {
  std::vector<std::pair<std::string, v1::WorkerState>> all;
  for (const auto& [name, entry] : workers_) {
    const v1::WorkerState state = StateOf(entry, now);
    if (state != v1::WORKER_STATE_GONE) all.emplace_back(entry.worker.device().label(), state);
  }
  return all;
}

std::vector<v1::Worker> WorkerList::All(bool gone_too, absl::Time now) const {
  std::vector<v1::Worker> all;
  for (const auto& [name, entry] : workers_) {
    const v1::WorkerState state = StateOf(entry, now);
    if (state == v1::WORKER_STATE_GONE && !gone_too) continue;
    v1::Worker worker = entry.worker;
    worker.set_state(state);
    if (entry.last_seen != absl::InfinitePast()) SetTime(entry.last_seen, worker.mutable_last_seen());
    all.push_back(std::move(worker));
  }
  std::sort(all.begin(), all.end(), [](const v1::Worker& a, const v1::Worker& b) {
    return TimeOf(a.register_time()) > TimeOf(b.register_time());
  });
  return all;
}

std::vector<const v1::Worker*> WorkerList::Present(absl::Time now) const {
  std::vector<const v1::Worker*> present;
  for (const auto& [name, entry] : workers_) {
    const v1::WorkerState state = entry.worker.state();
    const bool takes = state != v1::WORKER_STATE_DRAINING && state != v1::WORKER_STATE_SICK;
    if (takes && !Gone(name, now)) present.push_back(&entry.worker);
  }
  return present;
}

absl::Status CanRun(const v1::Device& device, const v1::Campaign& campaign, const std::string& space_hash) {
  if (!campaign.device().empty() && campaign.device() != device.label()) {
    return absl::FailedPreconditionError(absl::StrCat("it began on ", campaign.device()));
  }
  const std::string& gpu = campaign.spec().gpu();
  if (!gpu.empty() && !absl::StrContains(absl::AsciiStrToLower(device.gpu().name()), absl::AsciiStrToLower(gpu))) {
    return absl::FailedPreconditionError(absl::StrCat("it asks for a GPU named ", gpu));
  }
  return device.kind() == v1::DEVICE_KIND_REPLAY ? WasRecorded(device, campaign, space_hash) : absl::OkStatus();
}

}  // namespace pawl
