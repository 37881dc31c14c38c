#include "worker/trial/side_by_side.h"

#include <algorithm>
#include <utility>

#include "kernels/space.h"
#include "profiles/gpus.h"
#include "worker/build/built_variant.h"
#include "worker/trial/trial_build.h"
#include "worker/trial/trial_pipeline.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

class Sides {
 public:
  Sides(GpuDevice& device, const ComparedSide& base, const ComparedSide& candidate, TrialObserver& observer)
      : device_(device), base_(base), candidate_(candidate), observer_(observer), hash_(BundleHash(*base.bundle)) {}

  absl::StatusOr<SideBySide> Compare(const std::vector<std::string>& sizes) {
    result_.device = device_.gpu().name();
    // The same hidden sizes for both.
    const SizesToValidate validated = AllSizes(*base_.bundle);
    small_ = validated.small;
    for (auto [side, built] : {std::pair{&base_, &built_base_}, std::pair{&candidate_, &built_candidate_}}) {
      absl::StatusOr<BuiltVariant> variant = BuildVariant(
          device_.builder(), *side->bundle, side->variant, validated.all, device_.gpu(),
          [this] { return observer_.stopped(); }, base_.bundle.get());
      if (!variant.ok()) return variant.status();
      *built = *std::move(variant);
    }
    result_.base_failure = built_base_.failure;
    result_.candidate_failure = built_candidate_.failure;
    for (const std::string& size : sizes) {
      if (result_.base_failure || result_.candidate_failure) break;
      if (absl::Status status = CompareAt(size); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  TrialBuild BuildOf(const ComparedSide& side, const BuiltVariant& built, const std::string& size) const {
    TrialBuild build;
    *build.trial.mutable_variant() = side.variant;
    *build.trial.mutable_noise() = NoiseOf(device_.gpu().name());
    build.trial.set_size(size);
    build.bundle = side.bundle;
    build.before_edits = base_.bundle;
    build.own_hash = hash_;
    build.size = size;
    build.sizes = {{size, 1}};
    build.candidate = built;
    build.small = small_;
    return build;
  }

  absl::Status CompareAt(const std::string& size) {
    ComparedSize at;
    at.size = size;
    TrialBuild alone = BuildOf(base_, built_base_, size);
    const bool passed = !result_.sizes.empty();  // at all sizes, before the first was timed
    if (passed) {
      alone.candidate.sizes = {*built_base_.Find(size)};
      alone.small = 0;
    }
    absl::StatusOr<TrialOutcome> base = RunBase(device_, alone, passed, observer_);
    if (!base.ok()) return base.status();
    result_.AddNote(base->result.notes());
    at.base = base->result.evidence();
    if (base->result.has_failure()) {
      result_.base_failure = base->result.failure();
      return absl::OkStatus();
    }
    TrialBuild build = BuildOf(candidate_, built_candidate_, size);
    *build.trial.mutable_parent() = base_.variant;
    build.parent = *built_base_.Find(size);
    if (build.same_as_parent()) {
      at.comparison = SameCode();
      at.candidate = at.base;
      result_.sizes.push_back(std::move(at));
      return absl::OkStatus();
    }
    absl::StatusOr<TrialOutcome> beside = RunBesideBase(device_, build, observer_);
    if (!beside.ok()) return beside.status();
    const v1::TrialResult& measured = beside->result;
    result_.AddNote(measured.notes());
    const bool cold = candidate_.bundle->timing() == v1::TIMING_MODE_COLD;
    at.base_us = cold ? measured.parent_cold_us() : measured.parent_warm_us();
    at.candidate_us = cold ? measured.cold_us() : measured.warm_us();
    at.candidate = measured.evidence();
    at.comparison = std::move(beside->comparison);
    const bool unsteady =
        at.comparison.result() == v1::UNCLEAR && at.comparison.discarded() >= KeepRule().max_discarded;
    if (unsteady && !measured.disturbances().empty()) {
      at.comparison.set_reason(absl::StrCat("Unclear: ", at.comparison.discarded(),
                                            " pairs were discarded: ", absl::StrJoin(measured.disturbances(), "; ")));
    }
    if (measured.has_failure() && measured.failure().check() == v1::CHECK_UNSTEADY) {
      at.comparison.set_result(v1::UNCLEAR);
      at.comparison.set_reason(measured.failure().message());
    } else if (measured.has_failure()) {
      result_.candidate_failure = measured.failure();
      return absl::OkStatus();
    }
    result_.sizes.push_back(std::move(at));
    return absl::OkStatus();
  }

  GpuDevice& device_;
  const ComparedSide &base_, &candidate_;
  TrialObserver& observer_;
  const std::string hash_;  // both sides' inputs are as large as the base takes
  BuiltVariant built_base_, built_candidate_;
  size_t small_ = 0;
  SideBySide result_;
};

}  // namespace

void SideBySide::AddNote(const std::string& note) {
  if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

v1::ComparisonResult Overall(const SideBySide& compared) {
  for (const v1::ComparisonResult result : {v1::SLOWER, v1::UNCLEAR, v1::FASTER}) {
    for (const ComparedSize& at : compared.sizes) {
      if (at.comparison.result() == result) return result;
    }
  }
  return v1::SAME;
}

v1::Comparison SameCode() {
  v1::Comparison comparison;
  comparison.set_result(v1::SAME);
  comparison.set_reason("The same: both have the same machine code and launches, so there is nothing to time");
  return comparison;
}

absl::StatusOr<SideBySide> CompareSides(GpuDevice& device, const ComparedSide& base, const ComparedSide& candidate,
                                        const std::vector<std::string>& sizes, TrialObserver& observer) {
  return Sides(device, base, candidate, observer).Compare(sizes);
}

}  // namespace pawl
