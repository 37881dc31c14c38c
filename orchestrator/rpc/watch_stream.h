#pragma once

#include "db/store.h"
#include "grpcpp/support/server_callback.h"
#include "orchestrator/core/watch_hub.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Streams a campaign's events from the store, then follows it until it has ended or the client leaves. Owns itself.
grpc::ServerWriteReactor<v1::WatchCampaignResponse>* StartWatchStream(Store& store, WatchHub& hub,
                                                                      const v1::WatchCampaignRequest& request);

}  // namespace pawl
