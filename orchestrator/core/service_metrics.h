#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"

namespace pawl {

class Orchestrator;

// How an orchestrator stands at one moment.
struct ServiceFigures {
  struct Trials {
    int queued = 0, leased = 0;
    int held = 0;                                 // not leased because of maintenance or a limit of their author
    int unserved = 0;                             // queued, and no worker that is there can run them
    absl::Duration oldest_queued, oldest_leased;  // since they were planned
  };
  // By what a campaign asks for: the GPU that it began on; before that the name that its submission asks for; "any"
  // where it asks for none.
  std::map<std::string, Trials> trials;
  std::map<std::pair<std::string, std::string>, int> workers;  // by GPU and state
  std::map<std::string, int> campaigns;                        // unfinished ones by state
  std::map<std::string, int> waiting_for;                      // unfinished ones that wait, by what for
  int waiting_leases = 0;                                      // LeaseTrial calls under way
  bool serving = false;
  bool maintenance = false;
};

// What /metrics answers: the figures, the counts since the start, and the sizes of the store, in Prometheus' text
// format. Holds the orchestrator's lock for the figures only, and the store's for reading.
absl::StatusOr<std::string> ServiceMetrics(Orchestrator& orchestrator, Store& store);

}  // namespace pawl
