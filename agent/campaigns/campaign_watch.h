#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// A campaign's events as they come. For one thread.
class CampaignWatch {
 public:
  enum class Got { kMessage, kNothingYet, kEnd };

  virtual ~CampaignWatch() = default;
  // Waits so long at most. kEnd: the stream is over, status() says how; OK when the campaign has ended.
  virtual Got Next(absl::Duration wait, v1::WatchCampaignResponse* message) = 0;
  virtual absl::Status status() const = 0;
};

}  // namespace pawl
