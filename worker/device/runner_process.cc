#include "worker/device/runner_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "worker/process/host_fault.h"

namespace pawl {
namespace {

constexpr absl::Duration kOpenDeadline = absl::Seconds(60);  // the first context on an idle GPU takes seconds
constexpr absl::Duration kLoadDeadline = absl::Seconds(20);
constexpr absl::Duration kProvideDeadline = absl::Seconds(60);
constexpr size_t kMaxLoaded = 64;  // modules kept in a runner

v1::RunnerReply Failed(v1::Check check, const std::string& message) {
  v1::RunnerReply reply;
  reply.mutable_failure()->set_check(check);
  reply.mutable_failure()->set_message(message);
  reply.set_context_lost(true);
  return reply;
}

}  // namespace

absl::Status RunnerProcess::Open() {
  if (child_ != nullptr && child_->alive()) return absl::OkStatus();
  Restart();
  Settle();
  if (spare_ != nullptr && spare_->alive()) {
    child_ = std::move(spare_);
    return absl::OkStatus();
  }
  EndSpare();
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = Spawn();
  if (!started.ok()) return started.status();
  child_ = *std::move(started);
  return SendOpen();
}

absl::Status RunnerProcess::OpenSpare() {
  if (spare_ != nullptr && spare_->alive()) return absl::OkStatus();
  EndSpare();
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = Spawn();
  if (!started.ok()) return started.status();
  spare_ = *std::move(started);
  spare_opens_until_ = SteadyNow() + kOpenDeadline;
  const absl::Status sent = spare_->Send(OpenRequest(), spare_opens_until_);
  if (!sent.ok()) EndSpare();
  return sent;
}

void RunnerProcess::Settle() {
  if (spare_ == nullptr || spare_opens_until_ == SteadyTime::InfinitePast()) return;
  const SteadyTime until = std::exchange(spare_opens_until_, SteadyTime::InfinitePast());
  v1::RunnerReply reply;
  const absl::Status status = spare_->Receive(&reply, until, stopped_);
  busy_seconds_ += reply.seconds();
  if (status.ok() && reply.has_open()) {
    gpu_ = reply.open().gpu();
  } else {
    EndSpare();  // the next request starts a process itself, and returns the error where that fails
  }
}

void RunnerProcess::EndSpare() {
  spare_.reset();
  spare_opens_until_ = SteadyTime::InfinitePast();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> RunnerProcess::Spawn() const {
  ChildOptions child;
  child.env = options_.env;
  if (options_.counters_folder.empty()) {
    child.argv = {options_.program, "--shared-fd", "3"};
    if (options_.sandboxing != nullptr) child.argv = options_.sandboxing->Runner(child.argv, 3);
    child.fds = {{options_.shared_fd, 3}};
  } else {
    child.argv = {options_.program, "--counters"};
    if (options_.sandboxing != nullptr) child.argv = options_.sandboxing->Tool(child.argv, options_.counters_folder);
  }
  return ChildProcess::Start(child);
}

absl::Status RunnerProcess::SetSupportCubin(const std::string& cubin) {
  options_.support_cubin = cubin;
  EndSpare();
  if (child_ == nullptr || !child_->alive()) return absl::OkStatus();
  return SendOpen();
}

v1::RunnerRequest RunnerProcess::OpenRequest() const {
  v1::RunnerRequest request;
  request.mutable_open()->set_device(options_.device);
  request.mutable_open()->set_support_cubin(options_.support_cubin);
  return request;
}

absl::Status RunnerProcess::SendOpen() { return ReadOpened(Exchange(OpenRequest(), kOpenDeadline)); }

absl::Status RunnerProcess::ReadOpened(absl::StatusOr<v1::RunnerReply> reply) {
  if (!reply.ok()) return reply.status();
  if (!reply->has_open()) {
    Restart();
    return RunnerFault(absl::StrCat("the runner could not open cuda:", options_.device, ": ",
                                    reply->has_failure() ? reply->failure().message() : reply->host_error()));
  }
  gpu_ = reply->open().gpu();
  return absl::OkStatus();
}

void RunnerProcess::Restart() {
  child_.reset();
  loaded_.clear();
  pools_.clear();
  served_others_ = false;
}

void RunnerProcess::EndAll() {
  Restart();
  EndSpare();  // what ended the one may have harmed the other
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Exchange(const v1::RunnerRequest& request, absl::Duration deadline) {
  const SteadyTime until = SteadyNow() + deadline;
  return Reply(child_->Send(request, until), until, deadline);
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Reply(absl::Status status, SteadyTime until, absl::Duration deadline) {
  v1::RunnerReply reply;
  if (status.ok()) status = child_->Receive(&reply, until, stopped_);
  if (absl::IsCancelled(status)) {
    EndAll();
    return status;
  }
  if (absl::IsDeadlineExceeded(status)) {
    EndAll();
    return Failed(v1::CHECK_TIMEOUT, absl::StrCat("not done after ", absl::FormatDuration(deadline),
                                                  ": the kernel hangs or is far too slow; the runner was killed"));
  }
  if (!status.ok()) {
    EndAll();
    v1::RunnerReply died = Failed(v1::CHECK_FAULT, absl::StrCat("the runner died: ", status.message()));
    died.set_runner_died(true);
    return died;
  }
  busy_seconds_ += reply.seconds();
  if (reply.context_lost()) EndAll();
  return reply;
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Ask(const v1::RunnerRequest& request, absl::Duration deadline) {
  if (absl::Status open = Open(); !open.ok()) return open;
  absl::StatusOr<v1::RunnerReply> reply = Exchange(request, deadline);
  if (reply.ok() && reply->reply_case() == v1::RunnerReply::kHostError) {
    return RunnerFault(reply->host_error());
  }
  return reply;
}

void RunnerProcess::UnloadAll() {
  if (child_ == nullptr || !child_->alive()) return;
  served_others_ = served_others_ || !loaded_.empty();
  while (!loaded_.empty()) {
    v1::RunnerRequest unload;
    unload.mutable_unload()->set_module(loaded_.begin()->first);
    loaded_.erase(loaded_.begin());
    if (!Ask(unload, kLoadDeadline).ok()) return Restart();  // a fresh process has none either
  }
  while (!pools_.empty()) {
    v1::ProvideRequest drop;
    drop.set_pool(pools_.begin()->first);
    drop.set_drop(true);
    if (!Provide(drop).ok()) return Restart();
  }
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Provide(const v1::ProvideRequest& request) {
  if (absl::Status open = Open(); !open.ok()) return open;
  if (request.drop() && pools_.erase(request.pool()) == 0) return v1::RunnerReply();
  v1::RunnerRequest asked;
  *asked.mutable_provide() = request;
  absl::StatusOr<v1::RunnerReply> reply = Ask(asked, kProvideDeadline);
  if (reply.ok() && !reply->has_failure() && !request.drop()) pools_[request.pool()].insert(request.entry());
  return reply;
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::ProvideFile(const std::string& id, const std::string& content) {
  if (absl::Status open = Open(); !open.ok()) return open;
  if (HasEntry(id, 0)) return v1::RunnerReply();
  // Behind what lies there: outputs may wait to be compared.
  struct stat shared;
  if (fstat(options_.shared_fd, &shared) != 0) return absl::InternalError(absl::StrCat("fstat: ", strerror(errno)));
  for (size_t written = 0; written < content.size();) {
    const ssize_t count = pwrite(options_.shared_fd, content.data() + written, content.size() - written,
                                 shared.st_size + static_cast<off_t>(written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const absl::Status full = absl::ResourceExhaustedError(
          absl::StrCat("no room for ", content.size(), " bytes of inputs in shared memory: ", strerror(errno)));
      (void)!ftruncate(options_.shared_fd, shared.st_size);
      return full;
    }
    written += static_cast<size_t>(count);
  }
  v1::ProvideRequest request;
  request.set_pool(id);
  v1::ProvideRequest::Part& part = *request.add_parts();
  part.set_offset(shared.st_size);
  part.set_bytes(static_cast<int64_t>(content.size()));
  absl::StatusOr<v1::RunnerReply> reply = Provide(request);
  if (ftruncate(options_.shared_fd, shared.st_size) != 0) {
    return absl::InternalError(absl::StrCat("ftruncate: ", strerror(errno)));
  }
  return reply;
}

bool RunnerProcess::HasEntry(const std::string& pool, uint32_t entry) const {
  if (child_ == nullptr || !child_->alive()) return false;
  const auto found = pools_.find(pool);
  return found != pools_.end() && found->second.contains(entry);
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Load(
    const std::string& id, const std::string& cubin,
    const google::protobuf::RepeatedPtrField<v1::PlanLaunch>& launches) {
  if (absl::Status open = Open(); !open.ok()) return open;
  std::string key;  // occupancy depends on the launches
  for (const v1::PlanLaunch& launch : launches) key += launch.SerializeAsString();
  auto found = loaded_.find(id);
  if (found != loaded_.end()) {
    found->second.used = ++uses_;
    if (auto known = found->second.replies.find(key); known != found->second.replies.end()) {
      v1::RunnerReply reply;
      *reply.mutable_load() = known->second;
      return reply;
    }
  }
  const bool resources_only = found != loaded_.end();
  if (!resources_only && loaded_.size() >= kMaxLoaded) {
    const auto oldest = std::min_element(loaded_.begin(), loaded_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    v1::RunnerRequest unload;
    unload.mutable_unload()->set_module(oldest->first);
    loaded_.erase(oldest);
    absl::StatusOr<v1::RunnerReply> reply = Ask(unload, kLoadDeadline);
    if (!reply.ok()) return reply;
  }
  v1::RunnerRequest request;
  request.mutable_load()->set_module(id);
  if (!resources_only) request.mutable_load()->set_cubin(cubin);
  *request.mutable_load()->mutable_launches() = launches;
  absl::StatusOr<v1::RunnerReply> reply = Ask(request, kLoadDeadline);
  if (reply.ok() && reply->has_load()) {
    loaded_[id].replies[key] = reply->load();
    loaded_[id].used = ++uses_;
  }
  return reply;
}

}  // namespace pawl
