#include "tests/orchestrator/scripted_worker.h"

#include <gtest/gtest.h>

#include <optional>

namespace pawl {

v1::Device MadeDevice(const std::string& label, v1::DeviceKind kind) {
  v1::Device device;
  device.set_kind(kind);
  device.set_label(label);
  device.mutable_gpu()->set_name(kind == v1::DEVICE_KIND_REPLAY ? "NVIDIA H200" : label);
  return device;
}

v1::TrialResult NothingHelps(const v1::Trial& trial) {
  return trial.has_parent() ? Measured(trial.parent_us(), trial.parent_us() * 1.2) : MeasuredStart(100);
}

v1::TrialResult EverythingHelps(const v1::Trial& trial) {
  if (trial.purpose() == v1::TRIAL_PURPOSE_TOTAL) return Measured(trial.parent_us(), trial.parent_us() / 2);
  return trial.has_parent() ? Measured(trial.parent_us(), trial.parent_us() * 0.9) : MeasuredStart(100);
}

ScriptedWorker::ScriptedWorker(World& world, const std::string& name, const v1::Device& device,
                               const std::string& instance)
    : world_(world), name_("workers/" + name), device_(device), instance_(instance) {
  const absl::Status registered = Register();
  EXPECT_TRUE(registered.ok()) << registered;
}

absl::Status ScriptedWorker::Register() {
  v1::RegisterWorkerRequest request;
  request.set_name(name_);
  request.set_instance(instance_);
  *request.mutable_device() = device_;
  request.set_version("1.2.3");
  request.set_protocol(v1::WorkerProtocol_MAX);
  return world_->Register(request).status();
}

uint64_t ScriptedWorker::Wait(double seconds, Orchestrator::LeaseAnswer answer) {
  v1::LeaseTrialRequest request;
  request.set_worker(name_);
  request.set_instance(instance_);
  request.set_wait_seconds(seconds);
  return world_->Lease(request, std::move(answer));
}

absl::StatusOr<v1::LeaseTrialResponse> ScriptedWorker::Lease() {
  std::optional<absl::StatusOr<v1::LeaseTrialResponse>> answered;
  EXPECT_EQ(Wait(0, [&](absl::StatusOr<v1::LeaseTrialResponse> answer) { answered = std::move(answer); }), 0u);
  return answered ? *std::move(answered) : absl::InternalError("it was not answered at once");
}

v1::LeaseTrialResponse ScriptedWorker::MustLease() {
  absl::StatusOr<v1::LeaseTrialResponse> leased = Lease();
  EXPECT_TRUE(leased.ok()) << leased.status();
  EXPECT_TRUE(leased.ok() && leased->has_trial()) << "there is no trial";
  return leased.ok() ? *std::move(leased) : v1::LeaseTrialResponse();
}

absl::StatusOr<v1::RenewLeaseResponse> ScriptedWorker::Renew(const std::string& lease) {
  v1::RenewLeaseRequest request;
  request.set_worker(name_);
  request.set_instance(instance_);
  request.set_lease(lease);
  return world_->Renew(request);
}

absl::StatusOr<v1::CompleteTrialResponse> ScriptedWorker::Send(v1::CompleteTrialRequest request,
                                                               const std::string& lease) {
  request.set_worker(name_);
  request.set_instance(instance_);
  request.set_lease(lease);
  return world_.Complete(request);
}

absl::StatusOr<v1::CompleteTrialResponse> ScriptedWorker::Complete(const v1::LeaseTrialResponse& leased,
                                                                   const Measure& measure, bool lease_next) {
  v1::CompleteTrialRequest request;
  *request.mutable_result() = measure(leased.trial());
  SayWhatItIsOf(leased.trial(), &request);
  request.set_lease_next(lease_next);
  return Send(std::move(request), leased.lease());
}

absl::Status ScriptedWorker::HostFault(const std::string& lease, const std::string& message, bool gpu) {
  v1::CompleteTrialRequest request;
  request.mutable_host_fault()->set_message(message);
  request.mutable_host_fault()->set_gpu(gpu);
  return Send(std::move(request), lease).status();
}

absl::Status ScriptedWorker::GiveBack(const std::string& lease) {
  v1::CompleteTrialRequest request;
  request.set_given_back(true);
  return Send(std::move(request), lease).status();
}

absl::Status ScriptedWorker::Drain(bool gone) {
  v1::DrainWorkerRequest request;
  request.set_worker(name_);
  request.set_instance(instance_);
  request.set_gone(gone);
  return world_->Drain(request).status();
}

int ScriptedWorker::RunAll(const Measure& measure) {
  int trials = 0;
  while (true) {
    const absl::StatusOr<v1::LeaseTrialResponse> leased = Lease();
    EXPECT_TRUE(leased.ok()) << leased.status();
    if (!leased.ok() || !leased->has_trial()) return trials;
    const absl::Status completed = Complete(*leased, measure).status();
    EXPECT_TRUE(completed.ok()) << completed;
    ++trials;
  }
}

v1::Worker ScriptedWorker::Shown(bool gone_too) {
  v1::ListWorkersRequest request;
  request.set_gone_too(gone_too);
  const absl::StatusOr<v1::ListWorkersResponse> list = world_->Workers(request);
  EXPECT_TRUE(list.ok());
  for (const v1::Worker& worker : list->workers()) {
    if (worker.name() == name_) return worker;
  }
  return v1::Worker();
}

}  // namespace pawl
