#include "tests/gpu/examine.h"

#include <cstdio>

#include "kernels/plan.h"
#include "orchestrator/engine/roofline.h"
#include "profiles/gpus.h"
#include "worker/sanitizer.h"
#include "worker/validator.h"

namespace pawl {

CudaDevice* SharedDevice() {
  static const std::unique_ptr<CudaDevice> device = [] {
    absl::StatusOr<std::unique_ptr<CudaDevice>> opened = CudaDevice::Open({.builders = 4});
    if (!opened.ok()) fprintf(stderr, "no GPU: %s\n", std::string(opened.status().message()).c_str());
    return opened.ok() ? *std::move(opened) : nullptr;
  }();
  return device.get();
}

absl::StatusOr<Examination> Examine(CudaDevice& device, const v1::Bundle& bundle, const v1::Variant& variant) {
  Examination examination;
  std::vector<v1::Size> sizes = HiddenSizes(bundle, SecretSeed());
  const size_t small = sizes.size() + 1;  // and the smallest of the ladder
  sizes.insert(sizes.end(), bundle.sizes().begin(), bundle.sizes().end());
  absl::StatusOr<BuiltVariant> built = BuildVariant(device.builder(), bundle, variant, sizes, device.gpu());
  if (!built.ok()) return built.status();
  examination.failure = built->failure;
  if (examination.failure) return examination;

  absl::StatusOr<Validation> validation = Validate(device, bundle, *built, {.repeats = 20, .self_test = true});
  if (!validation.ok()) return validation.status();
  examination.failure = validation->failure;
  if (examination.failure) return examination;

  const BuiltSize* goal = built->Find(bundle.goal().size());
  absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, *goal, *goal, {});
  if (!timing.ok()) return timing.status();
  examination.timing = *std::move(timing);
  examination.failure = examination.timing.failure;
  if (examination.failure) return examination;

  if (const GpuSpec* spec = FindGpu(device.gpu().name())) {
    const bool cold = bundle.timing() == v1::TIMING_MODE_COLD;
    const v1::CompareReply& times = examination.timing.times;
    const double us = cold ? times.candidate_cold_us() : times.candidate_warm_us();
    if (us < RooflineFloorUs(goal->plan, *spec, bundle.work_on_tensor_cores(), bundle.timing())) {
      examination.failure.emplace();
      examination.failure->set_stage(v1::STAGE_MEASURE);
      examination.failure->set_check(v1::CHECK_ROOFLINE);
      examination.failure->set_message("faster than the GPU can move the bytes or do the arithmetic");
      return examination;
    }
  }

  if (!device.toolkit().compute_sanitizer.empty()) {
    std::vector<const BuiltSize*> few;
    for (size_t i = 0; i < small; ++i) few.push_back(&built->sizes[i]);
    absl::StatusOr<Sanitizing> sanitizing = Sanitize(device, few);
    if (!sanitizing.ok()) return sanitizing.status();
    examination.failure = sanitizing->failure;
    if (examination.failure) return examination;
  }
  return examination;
}

}  // namespace pawl
