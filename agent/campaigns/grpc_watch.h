#pragma once

#include <functional>
#include <memory>

#include "agent/campaigns/campaign_watch.h"
#include "grpcpp/support/status.h"
#include "pawl/v1/campaign_service.grpc.pb.h"

namespace pawl {

// What a status of gRPC means to the caller.
using ReadStatus = std::function<absl::Status(const grpc::Status&)>;

// Watches by a call of the service. The destructor cancels it.
std::unique_ptr<CampaignWatch> StartGrpcWatch(std::shared_ptr<v1::CampaignService::Stub> stub,
                                              const v1::WatchCampaignRequest& request, ReadStatus read);

}  // namespace pawl
