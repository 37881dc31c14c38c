#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "profiles/goal_sizes.h"
#include "worker/build/built_variant.h"
#include "worker/trial/ahead_builds.h"
#include "worker/trial/few_at_a_time.h"
#include "worker/trial/trial_device.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A trial's candidate, built at the sizes that it must pass before it is timed, and its parent at those that are timed.
struct TrialBuild : PreparedTrial {
  v1::Trial trial;
  std::shared_ptr<const v1::Bundle> bundle;  // with the candidate's source
  std::string size;                          // that is timed; of several the one that stands for all
  std::vector<SizeWeight> sizes;             // that are timed, in the order of the ladder
  std::optional<v1::Failure> failure;        // the candidate's, or the bundle's reference's
  BuiltVariant candidate;
  size_t small = 0;                                // so many of the candidate's sizes are small (SizesToValidate)
  std::shared_ptr<const v1::Bundle> before_edits;  // the bundle with its own source
  // The start variant at the small sizes, where the device does not know how large this bundle's inputs may be.
  std::optional<BuiltVariant> start;
  std::optional<BuiltSize> parent;                  // at `size`
  std::map<std::string, BuiltSize> parents;         // at the others of `sizes`
  std::map<std::string, BuiltSize> witness;         // at each of `sizes`, where the trial has one
  std::vector<BuiltSize> parent_ladder;             // at every size, where the best is measured beside the start
  std::vector<std::vector<BuiltSize>> unsanitized;  // each of trial.unsanitized at the sizes for compute-sanitizer
  std::string command;                              // that builds the candidate at the timed size
  double begin = 0;                                 // since the trial was leased
  double check_seconds = 0;
  double build_seconds = 0;
  bool built_ahead = false;  // while an earlier trial was measured

  // The bundle's, without the candidate's edits.
  const std::string& hash() const { return trial.bundle_hash().empty() ? own_hash : trial.bundle_hash(); }
  std::string own_hash;  // for trials that come without one

  // The candidate at that size; only where nothing failed.
  const BuiltSize& at() const { return *candidate.Find(size); }
  // The parent, or the start, at one of `sizes`.
  const BuiltSize& ParentAt(const std::string& at_size) const {
    return at_size == size ? *parent : parents.at(at_size);
  }
  // Null: the trial has none.
  const BuiltSize* WitnessAt(const std::string& at_size) const {
    const auto found = witness.find(at_size);
    return found == witness.end() ? nullptr : &found->second;
  }
  // Machine code and launches at the sizes that are timed are the parent's.
  bool same_as_parent() const;
};

// The CPU part of trials on a GPU. Thread-safe. Variants that were built lately are not built again as parents.
class TrialBuilder {
 public:
  // What is expected next is built in so many processes side by side, at most: several variants, or several sizes of
  // one.
  explicit TrialBuilder(GpuDevice& device, int ahead = 1)
      : device_(device), few_(device.builder(), std::max(1, ahead)), ahead_(std::max(1, ahead)) {}

  // A status is the machine's fault, or the orchestrator's: it asks for a size that the bundle does not have.
  absl::StatusOr<std::unique_ptr<TrialBuild>> Build(const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle,
                                                    TrialObserver& observer);

  // Builds variants that may follow this trial, in the background.
  void Expect(const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle,
              const std::vector<v1::ForeseenVariant>& foreseen);

  // Adds what was built ahead for the trial's campaign since its last result.
  void AddAheadTimes(const v1::Trial& trial, const TrialObserver& observer, v1::TrialResult* result);

 private:
  struct AheadTime {
    std::string campaign;
    std::chrono::steady_clock::time_point begin;
    v1::BesideTime time;  // without its begin
  };

  // `start`: the bundle without edits, or of a start that was proposed its contract.
  absl::StatusOr<AheadVariant> BuildCandidate(Compiler& compiler, const v1::Bundle& bundle, const v1::Variant& variant,
                                              const v1::Bundle& start, SizesToValidate sizes, const Stopped& stopped);
  absl::Status BuildParent(const v1::Bundle& bundle, const v1::Size& size, const Stopped& stopped, TrialBuild* build);
  absl::Status BuildUnsanitized(const std::shared_ptr<const v1::Bundle>& bundle, const Stopped& stopped,
                                TrialBuild* build);
  absl::Status BuildWitness(const v1::Bundle& bundle, const Stopped& stopped, TrialBuild* build);
  // A variant that was measured before.
  absl::StatusOr<BuiltSize> EarlierAt(const v1::Bundle& bundle, const v1::Size& size, const v1::Variant& variant,
                                      const std::string& bundle_hash, const Stopped& stopped);
  absl::Status BuildStart(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes, const Stopped& stopped,
                          TrialBuild* build);
  absl::Status BuildReferences(const Stopped& stopped, TrialBuild* build);
  std::string KeyOf(const v1::Bundle& bundle, const v1::Variant& variant, const std::string& size,
                    const std::string& bundle_hash) const;
  std::vector<BuiltSize> Recall(const std::string& key);  // empty: it was not built lately
  void Remember(const std::string& key, std::vector<BuiltSize> built);
  void NoteAhead(AheadTime built);

  GpuDevice& device_;
  absl::Mutex mutex_;
  std::list<std::pair<std::string, std::vector<BuiltSize>>> recent_ ABSL_GUARDED_BY(mutex_);  // latest first
  std::deque<AheadTime> ahead_times_ ABSL_GUARDED_BY(mutex_);  // not reported yet, the latest last
  FewAtATime few_;                                             // a trial that comes meanwhile finds others free
  AheadBuilds ahead_;                                          // the last: its threads use the others
};

// The sizes that a trial times: those of the bundle's goal, or the trial's alone where it is none of them.
std::vector<SizeWeight> TimedSizes(const v1::Trial& trial, const v1::Bundle& bundle);
// What it is judged by: the bundle's goal, or that of a portfolio's leg.
const v1::Goal& GoalOf(const v1::Trial& trial, const v1::Bundle& bundle);

// The steps of a trial on a GPU, at most: building, validating at each size, and what follows.
int CountSteps(const v1::Trial& trial, const v1::Bundle& bundle);

// Why a variant may not be tried for the memory that it allocates on the GPU: what a kernel allocates outlives its
// call, and where inputs repeat it can hold their results.
std::optional<v1::Failure> HeapThatRemembers(const v1::Bundle& bundle, const BuiltVariant& built);

// What the tensors of a plan take, without scratch, which a candidate may make as large as it likes.
int64_t ContractBytes(const v1::Plan& plan);

// The tools of compute-sanitizer are slow: they run at some of the small sizes, the hidden ones of which come first.
// Given what each takes, these are their places. `kSmaller`: from the half that takes less. That is enough until the
// end, where the winner meets the other half.
enum class HiddenToSanitize { kAny, kSmaller };
std::vector<size_t> PlacesToSanitize(const std::vector<int64_t>& small_bytes, HiddenToSanitize hidden);
// That other half, the one that takes least first.
std::vector<size_t> LargerHidden(const std::vector<int64_t>& small_bytes);
// Of so many of its sizes.
std::vector<int64_t> BytesOf(const std::vector<BuiltSize>& sizes, size_t small);

// The bundle with other device code; the same bundle when there is none.
std::shared_ptr<const v1::Bundle> WithSource(std::shared_ptr<const v1::Bundle> bundle, const std::string& source);

}  // namespace pawl
