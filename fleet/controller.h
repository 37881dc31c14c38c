#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/decision.h"

namespace pawl {

// What the controller looks at and acts on.
struct FleetSeams {
  std::function<absl::StatusOr<Demand>()> ask;
  // Names of all workers that the orchestrator knows, with those that are gone: a long list, asked for seldom.
  std::function<absl::StatusOr<std::vector<std::string>>()> all_workers;
  std::function<absl::StatusOr<std::vector<FleetJob>>()> jobs;
  std::function<absl::StatusOr<int64_t>(const GpuClass&)> submit;
  std::function<absl::Status(const std::vector<int64_t>&)> cancel;
  std::function<void(bool warning, const std::string& text)> say;
};

struct FleetOptions {
  std::vector<GpuClass> classes = {{}};
  FleetLimits limits;
  absl::Duration quick = absl::Seconds(60);  // a job that failed within this time failed at once
  absl::Duration shortest_backoff = absl::Seconds(20);
  absl::Duration longest_backoff = absl::Minutes(10);
  absl::Duration start_patience = absl::Minutes(5);  // for a running job's worker to register
  absl::Duration submitting = absl::Seconds(30);     // in one decision
};

// Keeps as many worker jobs as the queue asks for: decides (decision.h) and acts, and holds back where that fails.
// What it remembers only spares Slurm work and people messages: a new controller decides the same from what it sees,
// and finds the jobs that failed before in Slurm's own list.
//
// Where jobs fail at once, end without their worker ever having registered, or are refused, it waits, each time twice
// as long, and then tries a single one; when that one's worker has registered it goes on as before. Each kind of
// trouble is said once, and once more when it is over. Not thread-safe.
class FleetController {
 public:
  FleetController(FleetOptions options, FleetSeams seams) : options_(std::move(options)), seams_(std::move(seams)) {}

  // Looks, decides and acts once. `now` rises. False: something is in trouble, which was said.
  bool Step(absl::Time now);

 private:
  // Jobs that ended well, and whose workers the orchestrator never saw.
  std::set<int64_t> UnseenJobs(const std::vector<FleetJob>& jobs, const Demand& demand);
  // A job after those that failed had a worker.
  bool WorkedSince(const std::vector<FleetJob>& jobs, const Demand& demand);
  void NoteFailures(const std::vector<FleetJob>& jobs, const Demand& demand, absl::Time now);
  std::vector<int64_t> StaleJobs(const std::vector<FleetJob>& jobs, const Demand& demand, absl::Time now);
  void Submit(const Decision& decision, absl::Time now);
  void Cancel(const Decision& decision);
  void HoldBack(absl::Time since);
  // Once for each trouble, and again where its cause is another; an empty text: it is over.
  void Trouble(const std::string& kind, const std::string& text, const std::string& cause);
  void Trouble(const std::string& kind, const std::string& text) { Trouble(kind, text, text); }

  const FleetOptions options_;
  const FleetSeams seams_;
  std::map<std::string, std::string> troubles_;  // causes by kind; empty: none
  std::set<int64_t> known_failed_;
  std::set<int64_t> registered_;  // jobs whose workers were seen
  int64_t last_failed_ = 0;       // or the newest when Slurm refused another
  int64_t newest_ = 0;            // job that was seen
  bool looked_ = false;           // at Slurm's list
  int setbacks_ = 0;              // since the last success
  absl::Time hold_until_ = absl::InfinitePast();
  std::map<int64_t, absl::Time> without_worker_;  // running jobs, since when
  int surplus_ = 0;                               // decisions in a row that found jobs to cancel
  std::string last_said_;
};

}  // namespace pawl
