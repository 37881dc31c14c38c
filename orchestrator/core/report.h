#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/engine/search/chooser.h"
#include "pawl/v1/campaign_service.pb.h"
#include "profiles/profile_set.h"

namespace pawl {

// Makes reports from the store alone: a campaign's events are read again, so that nobody who decides has to wait for a
// report, however long the campaign is. Thread-safe. All that it is given must outlive it.
class Reports {
 public:
  using Clock = std::function<absl::Time()>;
  Reports(Store& store, const Chooser& chooser, const ProfileSet& profiles, Clock clock)
      : store_(store), chooser_(chooser), profiles_(profiles), clock_(std::move(clock)) {}

  // Errors as campaign_service.proto has them.
  absl::StatusOr<v1::GetReportResponse> Get(const v1::GetReportRequest& request) const;

 private:
  absl::StatusOr<v1::Report> Make(int64_t campaign) const;

  Store& store_;
  const Chooser& chooser_;
  const ProfileSet& profiles_;
  const Clock clock_;
};

}  // namespace pawl
