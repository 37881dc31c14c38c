#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "orchestrator/core/watch_hub.h"
#include "orchestrator/engine/state/campaign.h"
#include "orchestrator/meters/meters.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// One transaction in the making.
struct Step {
  struct Offer {
    LeaseAnswer answer;
    v1::LeaseTrialResponse response;
  };

  absl::Time now = {};
  absl::Duration served = {};  // LiveState::CampaignTime
  Writes writes = {};
  std::set<int64_t> touched = {};       // campaigns that have new events, or that must be looked at
  std::vector<Offer> offers = {};       // leases for those who wait, answered once they are committed
  std::vector<std::string> lines = {};  // for the log, once it is committed
};

// Results that were applied and are not written yet. They are written with what is decided from them, as long as nobody
// else changes one of their campaigns: each is in use (LiveState::InUse).
struct AppliedResults {
  Step step;
  std::optional<absl::Status> written;  // absent: not yet
};

// The only way into the store: events are applied to the state in memory, written in one transaction, and only then
// published. When a write fails, memory is ahead of the disk: the state is marked as broken until it is read again
// (recovery.h). Not thread-safe: the orchestrator's lock guards it.
class Committer {
 public:
  Committer(Store& store, WatchHub& hub, LiveState& state, Meters& meters, const OrchestratorOptions& options)
      : store_(store), hub_(hub), state_(state), meters_(meters), options_(options) {}

  // Applies the event to the campaign and adds it to the step.
  void Add(Step* step, CampaignState* campaign, v1::Event event);

  // Writes the step. What is published (answers to leases, wakes of those who watch) is left in `deferred`.
  absl::Status Commit(Step* step, Deferred* deferred);

 private:
  void Publish(Step* step, Deferred* deferred);
  absl::Status Fail(const absl::Status& status, Step* step, Deferred* deferred);

  Store& store_;
  WatchHub& hub_;
  LiveState& state_;
  Meters& meters_;
  const OrchestratorOptions& options_;
};

// One line for the log, campaign and iteration named in it. A lease names only its trial: `iteration` is the one it is
// about.
std::string LogLine(const v1::Event& event, int iteration);

}  // namespace pawl
