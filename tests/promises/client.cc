#include "tests/promises/client.h"

#include <cstdlib>

#include "kernels/read/bundle_reader.h"
#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {

v1::Bundle ShippedBundle(const std::string& name) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  const BundleReading reading = ReadBundle(std::string(source == nullptr ? "." : source) + "/kernels/" + name);
  EXPECT_TRUE(reading.problems.empty());
  return reading.bundle;
}

Client::Client(const std::string& address) {
  // It finds a restarted orchestrator at once.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  campaigns_ = v1::CampaignService::NewStub(channel);
  workers_ = v1::WorkerService::NewStub(channel);
}

std::string Client::Submit(const v1::Bundle& bundle, const v1::CampaignSpec& spec) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = bundle;
  *request.mutable_spec() = spec;
  return Ask(*campaigns_, &Campaigns::SubmitCampaign, request).name();
}

v1::Campaign Client::Get(const std::string& campaign) {
  v1::GetCampaignRequest request;
  request.set_name(campaign);
  return Ask(*campaigns_, &Campaigns::GetCampaign, request);
}

void Client::Cancel(const std::string& campaign) {
  v1::CancelCampaignRequest request;
  request.set_name(campaign);
  Ask(*campaigns_, &Campaigns::CancelCampaign, request);
}

v1::Worker Client::FindWorker(const std::string& name) {
  v1::ListWorkersRequest request;
  request.set_gone_too(true);
  const v1::ListWorkersResponse list = Ask(*campaigns_, &Campaigns::ListWorkers, request);
  for (const v1::Worker& worker : list.workers()) {
    if (worker.name() == name) return worker;
  }
  return v1::Worker();
}

grpc::Status Client::Register(const std::string& worker, const std::string& instance) {
  v1::RegisterWorkerRequest request;
  request.set_name(worker);
  request.set_instance(instance);
  request.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  request.mutable_device()->set_label("NVIDIA H200");
  request.set_protocol(v1::WorkerProtocol_MAX);
  v1::RegisterWorkerResponse reply;
  return Call(*workers_, &Workers::RegisterWorker, request, &reply);
}

grpc::Status Client::Lease(const std::string& worker, double wait_seconds, v1::LeaseTrialResponse* leased) {
  v1::LeaseTrialRequest request;
  request.set_worker(worker);
  request.set_instance("one");
  request.set_wait_seconds(wait_seconds);
  return Call(*workers_, &Workers::LeaseTrial, request, leased);
}

grpc::Status Client::Renew(const std::string& worker, const std::string& lease) {
  v1::RenewLeaseRequest request;
  request.set_worker(worker);
  request.set_instance("one");
  request.set_lease(lease);
  v1::RenewLeaseResponse reply;
  return Call(*workers_, &Workers::RenewLease, request, &reply);
}

grpc::Status Client::Complete(const std::string& worker, const v1::LeaseTrialResponse& leased) {
  v1::CompleteTrialRequest request;
  request.set_worker(worker);
  request.set_instance("one");
  request.set_lease(leased.lease());
  *request.mutable_result() = leased.trial().has_parent() ? Measured(100, 120) : MeasuredStart(100);
  SayWhatItIsOf(leased.trial(), &request);
  v1::CompleteTrialResponse reply;
  return Call(*workers_, &Workers::CompleteTrial, request, &reply);
}

}  // namespace pawl
