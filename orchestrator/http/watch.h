#pragma once

#include <memory>

#include "absl/time/time.h"
#include "orchestrator/http/exchange.h"
#include "pawl/v1/campaign_service.grpc.pb.h"

namespace pawl {

// WatchCampaign as server-sent events: `message` with the JSON of each WatchCampaignResponse and the event's sequence
// as its id, `end` when the campaign has ended and all was sent, `failed` with the error that the stream ended with.
// Says that it is still there after `patience` without news.
std::unique_ptr<HttpEvents> WatchAsEvents(v1::CampaignService::Stub& stub, const v1::WatchCampaignRequest& request,
                                          absl::Duration patience);

}  // namespace pawl
