#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "db/store.h"
#include "orchestrator/core/bundle_pool.h"
#include "orchestrator/engine/state/campaign.h"

namespace pawl {

struct StoredCampaign {
  std::unique_ptr<CampaignState> state;
  int64_t last_sequence = 0;  // of the events that made it
};

// A campaign as its events in the store make it; they are read a few at a time, so that others who read do not wait for
// a long log. NOT_FOUND: there is none. DATA_LOSS: its bundle is gone. With a pool it shares its bundle with others.
absl::StatusOr<StoredCampaign> ReadCampaign(Store& store, int64_t number, BundlePool* pool = nullptr);

// Writes the rows of every campaign from its events where the store says that an older Pawl wrote them: it corrected
// fewer rows by a total gain than the state did, and counted differently. Does nothing on any later call. A campaign
// that can't be read any more keeps its rows.
absl::Status BringRowsUpToDate(Store& store);

}  // namespace pawl
