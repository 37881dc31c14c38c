#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pawl {

// A kind of worker that the fleet can start.
struct GpuClass {
  std::string gpu;   // part of the GPU's name; empty: serves every demand
  std::string gres;  // what Slurm is asked for: gpu:h200:1; empty: what the script says
};

// A worker job of this fleet, as the scheduler shows it.
struct FleetJob {
  enum class State {
    kPending,
    kHeld,  // pending, and may not begin yet: held, or just requeued. Counts for the ceiling only
    kRunning,
    kEnding,  // has its node still
    kFailed,
    kEnded,
  };
  int64_t id = 0;
  std::string gpu;  // of its class
  State state = State::kEnded;
  bool completed = false;  // kEnded by itself, with exit code 0
  double seconds = 0;      // that it ran, where it has ended
  int64_t ended = 0;       // when, in seconds since 1970; 0: not known
  std::string reason;      // of pending or of its failure
  std::string log;         // where it writes; empty: not known
};

// What an orchestrator asks for and has.
struct Demand {
  std::map<std::string, int> queued;  // trials by the GPU that is asked for; "any"
  std::map<std::string, int> idle;    // workers by their GPU
  std::set<std::string> replays;      // of these, GPUs that are recordings: they serve their own trials only
  std::vector<std::string> workers;   // names of all that are there, without workers/
};

struct FleetLimits {
  int floor = 0;
  int ceiling = 1;
  int at_once = 25;  // submissions in one decision
};

struct Decision {
  std::map<std::string, int> submit;  // by class
  std::vector<int64_t> cancel;        // pending jobs that nobody needs, the newest first
  int wanted = 0, starting = 0, registered = 0;
  bool at_ceiling = false;  // more are needed than the ceiling allows
};

// Whether a worker is the one of this job: slurm-4711-node1-cuda0.
bool IsWorkerOfJob(const std::string& worker, int64_t job);
// The class that serves a demand for this GPU; -1: none does. Names match where one contains the other, whatever their
// case; "any" is the first class's.
int ClassFor(const std::vector<GpuClass>& classes, const std::string& gpu);

// How many jobs to start and which to cancel, from what is there alone: the same picture gives the same decision, so
// that the controller may be killed and restarted. `stale`: running jobs that no longer count as starting,
// since no worker of theirs registered.
//
// A queued trial needs a worker: one that is idle, one whose job is on its way, or a new one. Running jobs are never
// cancelled: their workers end by themselves when they are idle.
Decision Decide(const std::vector<GpuClass>& classes, const Demand& demand, const std::vector<FleetJob>& jobs,
                const FleetLimits& limits, const std::vector<int64_t>& stale = {});

}  // namespace pawl
