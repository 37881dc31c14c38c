#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"

namespace pawl {

// Unfinished campaigns are in memory with what people sent for them: bundles, of which a shared one counts once,
// proposals that wait, and the sources that proposed edits made.
//
// RESOURCE_EXHAUSTED: with this many bytes more, those of this author or those of all would be more than the options
// allow. `bundle_hash` names a bundle that they are of; empty: they are of a proposal.
absl::Status CheckHeldBytes(const LiveState& state, const OrchestratorOptions& options, const std::string& author,
                            int64_t bytes, const std::string& bundle_hash = "");

}  // namespace pawl
