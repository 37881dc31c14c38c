#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "profiles/goal_sizes.h"
#include "worker/record/sample_walk.h"
#include "worker/replay/recording.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

struct RecordOptions {
  int sample = 0;                // so many, by a SampleWalk; 0: every variant the constraints allow
  std::vector<v1::Variant> add;  // instead: these, to the recording that `output` is already
  bool profile = true;
  std::filesystem::path output;
  std::filesystem::path folder;  // the bundle's
};

struct RecordProgress {
  int done = 0;
  int planned = 0;
  int failed = 0;
  int profiled = 0;
  int to_profile = 0;  // known once everything is measured
  int fresh = 0;       // done in this run
  double seconds = 0;  // of this run's measuring
  double profile_seconds = 0;
  double best_speedup = 0;  // over the start variant
  std::string best;
};

// Measures variants of a bundle against its start variant, all of them nearest to the start first or a sample, at each
// size of the goal (a recording is of one size: the others lie beside it, with times only), and keeps each on disk as
// it is done: builds run ahead side by side, one variant at a time is on the GPU. Then profiles them, many in one ncu
// run.
class Recorder {
 public:
  Recorder(GpuDevice& device, const v1::Bundle& bundle, RecordOptions options);

  // Says what it does; a status is the machine's fault or the bundle's, and recording can go on later.
  absl::StatusOr<Recording> Run(const std::function<void(const RecordProgress&)>& report,
                                const std::function<void(const std::string&)>& say);

 private:
  struct Measured;
  using Report = std::function<void(const RecordProgress&)>;
  using Say = std::function<void(const std::string&)>;

  absl::StatusOr<v1::RecordingHeader> MakeHeader(bool goes_on, const Say& say);
  absl::Status PrepareStart(const Say& say);
  absl::Status Select();
  absl::StatusOr<RecordingJournal> OpenJournal(const std::filesystem::path& part, const Say& say);
  absl::StatusOr<std::vector<RecordingJournal>> OpenOthers(const RecordingJournal& main);
  absl::StatusOr<Measured> Measure(BuiltVariant built);
  absl::StatusOr<Measured> LoadAgain(BuiltVariant built, const v1::RecordedVariant& before);
  absl::Status ProfileAll(std::vector<Measured>* measured, RecordingJournal* journal, const Report& report,
                          const Say& say, RecordProgress* progress);
  // The next variants to measure; empty: there are no more.
  absl::StatusOr<std::vector<v1::Variant>> NextRound();
  const BuiltSize& AtGoal(const BuiltVariant& built) const { return *built.Find(bundle_.goal().size()); }

  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const std::shared_ptr<const v1::Bundle> shared_bundle_;  // a copy, for trials
  const RecordOptions options_;
  const std::vector<SizeWeight> sizes_;  // of the goal
  std::vector<v1::Variant> selection_;   // of a sample only the number counts
  std::optional<SampleWalk> walk_;       // of a sample
  BuiltVariant start_;
};

// The first `count` variants around the start (0: all that are allowed) by single-variable steps, nearest first.
absl::StatusOr<std::vector<v1::Variant>> ConnectedSample(const v1::Bundle& bundle, int count);

// Names of variables that no pair of recorded variants shows to change the machine code or the geometry.
std::vector<std::string> VariablesWithoutEffect(const Recording& recording);

}  // namespace pawl
