#include "worker/trial/roofline_check.h"

#include "absl/strings/str_format.h"
#include "profiles/gpus.h"
#include "profiles/roofline.h"

namespace pawl {

std::optional<v1::Failure> BelowRoofline(const std::string& gpu, const v1::Bundle& bundle, const v1::Plan& plan,
                                         double warm_us, double cold_us, double share) {
  const GpuSpec* spec = FindGpu(gpu);
  if (spec == nullptr) return std::nullopt;
  struct Time {
    v1::TimingMode mode;
    const char* name;
    double us;
  };
  for (const Time& time : {Time{v1::TIMING_MODE_WARM, "warm", warm_us}, Time{v1::TIMING_MODE_COLD, "cold", cold_us}}) {
    const double floor = share * RooflineFloorUs(plan, *spec, bundle.work_on_tensor_cores(), time.mode);
    if (time.us >= floor) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_MEASURE);
    failure.set_check(v1::CHECK_ROOFLINE);
    failure.set_size(plan.size());
    failure.set_message(
        absl::StrFormat("%.3f us %s is below the roofline floor of %.3f us: faster than the GPU can move the bytes or "
                        "do the arithmetic",
                        time.us, time.name, floor));
    return failure;
  }
  return std::nullopt;
}

std::string BaselineBelowRoofline(const std::string& gpu, const v1::Bundle& bundle, const v1::Plan& plan,
                                  const v1::BaselineTime& time) {
  const GpuSpec* spec = FindGpu(gpu);
  if (spec == nullptr) return "";
  const double floor = RooflineFloorUs(plan, *spec, bundle.work_on_tensor_cores(), v1::TIMING_MODE_WARM);
  if (time.graph_us() >= floor) return "";
  return absl::StrFormat(
      "the baseline takes %.3f us at %s, less than the roofline floor of %.3f us: it does less than the work of "
      "[work], "
      "or [work] says too much",
      time.graph_us(), plan.size(), floor);
}

}  // namespace pawl
