#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/build/built_variant.h"
#include "worker/trial/few_at_a_time.h"
#include "worker/validate/gpu_device.h"
#include "worker/validate/output_check.h"

namespace pawl {

// A candidate at the sizes that only what is about to be kept is validated at, and the reference there, built in the
// background: that begins while the candidate is confirmed. All sizes are drawn here, and nobody can foresee them.
class FurtherBuild {
 public:
  // The candidate was built at the sizes that are timed. `start`: as of BuildVariant; it must outlive this.
  FurtherBuild(GpuDevice& device, const v1::Bundle& bundle, const v1::Bundle* start, const BuiltVariant& candidate,
               const std::vector<SizeWeight>& timed);
  ~FurtherBuild() { *abandoned_ = true; }  // futures of std::async wait
  FurtherBuild(const FurtherBuild&) = delete;
  FurtherBuild& operator=(const FurtherBuild&) = delete;

  // Hidden sizes that no other variant meets, and all that a variant must pass.
  const std::vector<v1::Size>& hidden() const { return hidden_; }
  const SizesToValidate& again() const { return again_; }
  // Small in some dimensions and as large as what is timed in others; next to each size that is timed, and between it
  // and the hidden ones. A kernel may be wrong there only.
  const std::vector<v1::Size>& beside() const { return beside_; }

  // These wait, and may be called once, while nothing is timed: what is left is built all at once.
  absl::StatusOr<BuiltVariant> TakeHiddenAndAgain() { return Take(built_); }
  absl::StatusOr<BuiltVariant> TakeBeside() { return Take(built_beside_); }  // where there are any

 private:
  using Built = std::future<absl::StatusOr<BuiltVariant>>;
  absl::StatusOr<BuiltVariant> Take(Built& built) {
    few_->Hurry();
    return built.get();
  }

  const std::vector<v1::Size> hidden_;
  const SizesToValidate again_;
  std::vector<v1::Size> beside_;
  const std::shared_ptr<FewAtATime> few_;
  const std::shared_ptr<std::atomic<bool>> abandoned_ = std::make_shared<std::atomic<bool>>(false);
  Built built_, built_beside_;
};

}  // namespace pawl
