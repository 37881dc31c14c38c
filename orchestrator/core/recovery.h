#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "orchestrator/core/stored_campaign.h"

namespace pawl {

// At the start: reads workers, patterns and unfinished campaigns, and removes workers that were last seen long ago.
// Open leases stay with their workers: a worker that could not renew while the service was down gets one full lease
// from now. It gets that once: until it renews, another restart does not extend the lease again. The served time
// continues from the stored value.
absl::Status Restart(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state);

// After a failed commit: reads everything again, as Restart does, once the store can be written. An error: the store
// can't be written yet.
absl::Status RecoverFromFailedCommit(Store& store, BundlePool& bundles, const OrchestratorOptions& options,
                                     absl::Time now, LiveState* state);

}  // namespace pawl
