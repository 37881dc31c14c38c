#include "worker/replay/recorded_sides.h"

#include <utility>

#include "kernels/space.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

absl::StatusOr<TrialOutcome> Replay(ReplayDevice& device, const v1::Trial& trial, const ComparedSide& side,
                                    TrialObserver& observer) {
  absl::StatusOr<std::unique_ptr<PreparedTrial>> prepared = device.Prepare(trial, side.bundle, observer);
  if (!prepared.ok()) return prepared.status();
  absl::StatusOr<TrialOutcome> outcome = device.Run(**prepared, observer);
  if (outcome.ok() && !outcome->result.passed_over().empty()) {
    return absl::FailedPreconditionError(outcome->result.passed_over());
  }
  return outcome;
}

}  // namespace

absl::StatusOr<SideBySide> CompareRecorded(ReplayDevice& device, const ComparedSide& base,
                                           const ComparedSide& candidate, const std::vector<std::string>& sizes,
                                           TrialObserver& observer) {
  if (BundleHash(*base.bundle) != BundleHash(*candidate.bundle)) {
    return absl::FailedPreconditionError(
        "a recording has no times of edited sources: they can only be compared on a GPU");
  }
  SideBySide compared;
  const bool cold = base.bundle->timing() == v1::TIMING_MODE_COLD;
  for (const std::string& size : sizes) {
    ComparedSize at;
    at.size = size;
    v1::Trial trial;
    trial.set_size(size);
    *trial.mutable_noise() = NoiseOf(device.device().gpu().name());
    // A recording has no other use for either by itself than its checks and counters.
    for (auto [side, evidence, failure] : {std::tuple{&base, &at.base, &compared.base_failure},
                                           std::tuple{&candidate, &at.candidate, &compared.candidate_failure}}) {
      *trial.mutable_variant() = side->variant;
      absl::StatusOr<TrialOutcome> alone = Replay(device, trial, *side, observer);
      if (!alone.ok()) return alone.status();
      compared.device = alone->result.device();
      compared.AddNote(alone->result.notes());
      *evidence = alone->result.evidence();
      if (alone->result.has_failure()) *failure = alone->result.failure();
    }
    if (compared.base_failure || compared.candidate_failure) return compared;
    *trial.mutable_parent() = base.variant;
    absl::StatusOr<TrialOutcome> beside = Replay(device, trial, candidate, observer);
    if (!beside.ok()) return beside.status();
    const v1::TrialResult& result = beside->result;
    at.base_us = cold ? result.parent_cold_us() : result.parent_warm_us();
    at.candidate_us = cold ? result.cold_us() : result.warm_us();
    at.comparison = std::move(beside->comparison);
    compared.sizes.push_back(std::move(at));
  }
  return compared;
}

}  // namespace pawl
