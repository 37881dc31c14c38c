#include "tests/orchestrator/running_service.h"

#include "spdlog/spdlog.h"
#include "tests/orchestrator/in_memory.h"

namespace pawl {

using Campaigns = v1::CampaignService::Stub;
using Workers = v1::WorkerService::Stub;

void ExpectRefusal(const grpc::Status& status, grpc::StatusCode code, const std::string& part) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_NE(status.error_message(), "");
  EXPECT_NE(status.error_message().find(part), std::string::npos) << status.error_message() << " lacks " << part;
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(status.error_details()));
  EXPECT_NE(detail.fix(), "") << status.error_message();
}

RunningService::RunningService(const OrchestratorOptions& options) : folder_(InMemory("pawl-service-")) {
  spdlog::set_level(spdlog::level::off);
  store_ = Store::Open({.file = folder_.path() / "pawl.db"}).value();
  ServerOptions server;
  server.listen = "unix:" + (folder_.path() / "socket").string();
  server.orchestrator = options;
  server_ = Server::Start(*store_, server).value();
  channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  campaigns_ = v1::CampaignService::NewStub(channel_);
  workers_ = v1::WorkerService::NewStub(channel_);
}

std::string RunningService::Submit() {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  return Ask(*campaigns_, &Campaigns::SubmitCampaign, request).name();
}

void RunningService::Register(const std::string& name) {
  auto request = Made<v1::RegisterWorkerRequest>(
      "instance: 'one' version: '1' protocol: WORKER_PROTOCOL_4 device { kind: DEVICE_KIND_CUDA label: 'NVIDIA H200' "
      "gpu { name: 'NVIDIA H200' } "
      "}");
  request.set_name(name);
  EXPECT_EQ(Ask(*workers_, &Workers::RegisterWorker, request).lease_seconds(), 15);
}

v1::LeaseTrialResponse RunningService::Lease(const std::string& name) {
  auto request = Made<v1::LeaseTrialRequest>("instance: 'one'");
  request.set_worker(name);
  return Ask(*workers_, &Workers::LeaseTrial, request);
}

v1::CompleteTrialRequest RunningService::Result(const std::string& name, const v1::LeaseTrialResponse& leased) {
  auto request = Made<v1::CompleteTrialRequest>("instance: 'one'");
  request.set_worker(name);
  request.set_lease(leased.lease());
  const v1::Trial& trial = leased.trial();
  *request.mutable_result() =
      trial.has_parent() ? Measured(trial.parent_us(), trial.parent_us() * 1.2) : MeasuredStart(100);
  SayWhatItIsOf(trial, &request);
  return request;
}

void RunningService::RunAll(const std::string& name) {
  while (true) {
    const v1::LeaseTrialResponse leased = Lease(name);
    if (!leased.has_trial()) return;
    Ask(*workers_, &Workers::CompleteTrial, Result(name, leased));
  }
}

}  // namespace pawl
