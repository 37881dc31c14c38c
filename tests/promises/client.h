#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "grpcpp/grpcpp.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "pawl/v1/worker_service.grpc.pb.h"

namespace pawl {

// A bundle of kernels/.
v1::Bundle ShippedBundle(const std::string& name);

// Speaks to an orchestrator that may come and go. Thread-safe.
class Client {
 public:
  using Campaigns = v1::CampaignService::Stub;
  using Workers = v1::WorkerService::Stub;

  explicit Client(const std::string& address);

  Campaigns& campaigns() { return *campaigns_; }
  Workers& workers() { return *workers_; }

  // Waits for an orchestrator, and ten seconds at most.
  template <typename Stub, typename Request, typename Reply>
  static grpc::Status Call(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                           const std::type_identity_t<Request>& request, std::type_identity_t<Reply>* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    context.set_wait_for_ready(true);
    return (stub.*rpc)(&context, request, reply);
  }
  // Where it must be answered. The first call after a restart may still meet the connection that broke.
  template <typename Stub, typename Request, typename Reply>
  static Reply Ask(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                   const std::type_identity_t<Request>& request) {
    Reply reply;
    grpc::Status status;
    (void)Until(std::chrono::seconds(10), [&] {
      status = Call(stub, rpc, request, &reply);
      return status.error_code() != grpc::StatusCode::UNAVAILABLE;
    });
    EXPECT_TRUE(status.ok()) << status.error_code() << " " << status.error_message();
    return reply;
  }

  // The campaign's name.
  std::string Submit(const v1::Bundle& bundle, const v1::CampaignSpec& spec = {});
  v1::Campaign Get(const std::string& campaign);
  void Cancel(const std::string& campaign);
  // Those too that are gone.
  v1::Worker FindWorker(const std::string& name);

  // As a worker of this name, on a device that can run everything.
  grpc::Status Register(const std::string& worker, const std::string& instance = "one");
  grpc::Status Lease(const std::string& worker, double wait_seconds, v1::LeaseTrialResponse* leased);
  grpc::Status Renew(const std::string& worker, const std::string& lease);
  // The start takes 100 us; no change helps.
  grpc::Status Complete(const std::string& worker, const v1::LeaseTrialResponse& leased);

  // Asks until it holds, as long as the patience goes.
  template <typename Condition>
  static bool Until(std::chrono::milliseconds patience, const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

 private:
  std::unique_ptr<Campaigns> campaigns_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace pawl
