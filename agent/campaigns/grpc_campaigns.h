#pragma once

#include <functional>
#include <memory>

#include "agent/campaigns/campaigns.h"
#include "agent/campaigns/grpc_watch.h"

namespace grpc {
class Channel;
}

namespace pawl {

struct GrpcCampaignsOptions {
  ReadStatus read = nullptr;  // null: the code, the message and the ErrorDetail as they came
  // Where the orchestrator is now, after it stopped answering; null, or a null channel: where it was.
  std::function<std::shared_ptr<grpc::Channel>()> reopen = nullptr;
};

// CampaignService by calls that each wait for their answer, 20 s at most. Calls that change nothing are repeated once
// after `reopen`.
std::unique_ptr<Campaigns> OpenGrpcCampaigns(const std::shared_ptr<grpc::Channel>& channel,
                                             GrpcCampaignsOptions options = {});

}  // namespace pawl
