#include "cli/drive/connected_campaigns.h"

#include "agent/campaigns/grpc_campaigns.h"

namespace pawl {

std::shared_ptr<Campaigns> CampaignsOf(Connection& connection) {
  GrpcCampaignsOptions options;
  options.read = [address = connection.address()](const grpc::Status& status) {
    return CampaignClient::Read(status, address);
  };
  options.reopen = [&connection]() -> std::shared_ptr<grpc::Channel> {
    return connection.Reopen(Need::kDatabase).ok() ? connection.client().channel() : nullptr;
  };
  return OpenGrpcCampaigns(connection.client().channel(), std::move(options));
}

}  // namespace pawl
