#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "orchestrator/core/stored_campaign.h"

namespace pawl {

// At the start: reads workers, patterns and unfinished campaigns, and forgets workers of long ago. Leases that were out
// are adopted: their workers have a whole lease to be heard of, once until they renew, however often it is started. The
// served time goes on from what was stored.
absl::Status Restart(Store& store, BundlePool& bundles, const OrchestratorOptions& options, absl::Time now,
                     LiveState* state);

// After a commit that failed: once the store can be written again, reads everything from it, the same way. An error:
// not yet.
absl::Status RecoverFromFailedCommit(Store& store, BundlePool& bundles, const OrchestratorOptions& options,
                                     absl::Time now, LiveState* state);

}  // namespace pawl
