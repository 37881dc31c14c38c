#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/trial/further_build.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/trial_build.h"
#include "worker/trial/trial_device.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A built variant on its way through the steps of a trial (trial_steps.h), and what has come of it so far. One thread.
struct TrialRun {
  TrialRun(GpuDevice& device, const TrialBuild& build, TrialObserver& observer);

  // The candidate has failed: no later step runs.
  void Fail(v1::Failure failure);
  bool failed() const { return outcome.result.has_failure(); }
  // Says that the next step begins.
  void Report(v1::Stage stage, const std::string& text);
  // From `begin` until now, in seconds since the trial was leased. What follows at once on the same stage is one with
  // it.
  void AddStage(v1::Stage stage, double begin);
  // Adds to result.notes: what was left out, and why.
  void Note(const std::string& text);

  v1::TrialResult& result() { return outcome.result; }
  // That are timed, in the order of the ladder.
  std::vector<SizeWeight> sizes() const {
    return build.sizes.empty() ? std::vector<SizeWeight>{{build.size, 1}} : build.sizes;
  }
  // What of a time decides: warm, or with cold caches, as the bundle asks.
  double DecidingUs(double warm_us, double cold_us) const {
    return bundle.timing() == v1::TIMING_MODE_COLD ? cold_us : warm_us;
  }
  // What is not the machine's fault among errors of validating and timing: a reference that does not run, or a size
  // that does not fit into the GPU's memory beside it.
  std::optional<v1::Failure> ReferenceFailure(const absl::Status& status, v1::Stage stage) const;
  ProfileItem item() const { return {&build.at(), resources, bundle.work_on_tensor_cores()}; }

  GpuDevice& device;
  const TrialBuild& build;
  const v1::Bundle& bundle;
  TrialObserver& observer;
  // A reference that does not run, or does not fit into memory beside the candidate: true: the candidate fails, and a
  // campaign goes on with the next; false: the step returns the status, since all other variants would meet the same.
  bool reference_fails_candidate = true;

  TrialOutcome outcome;
  std::vector<v1::ResourceUse> resources;                  // of the launches at the timed size
  std::map<std::string, std::optional<BuiltSize>> starts;  // the start variant where it was asked for, by size
  InputMagnitudes inputs;                          // distributions that validation uses beside the bundle's own fill
  bool timed = false;                              // pairs and times of the result stand
  bool faster = false;                             // than the parent, beyond doubt
  std::vector<v1::StageTime> stages;               // in order, without static check and build of the candidate
  std::map<std::string, double> validate_seconds;  // by size: what timing there may take, too
  std::map<std::string, SideTimes> times;          // by size, of those that were timed
  std::vector<BuiltVariant> more;                  // the candidate at sizes that only what is about to be kept meets
  std::unique_ptr<FurtherBuild> further;           // that has begun; null: none
  std::unique_ptr<SanitizerRun> sanitizer;         // that runs beside what is not timed; null: none does
  double sanitizer_begin = 0;                      // since the trial was leased

 private:
  int step_ = 1;  // building was the first
  const int steps_;
};

// Adds the time until its end to a stage of a run.
class StageWatch {
 public:
  StageWatch(TrialRun& run, v1::Stage stage) : run_(run), stage_(stage), begin_(run.observer.seconds()) {}
  ~StageWatch() { run_.AddStage(stage_, begin_); }

 private:
  TrialRun& run_;
  const v1::Stage stage_;
  const double begin_;
};

}  // namespace pawl
