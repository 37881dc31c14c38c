#include "worker/runner/driver/cupti.h"

#include <dlfcn.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr CUptiResult kHardwareBusy = 26, kForbidden = 35, kSeveralSubscribers = 39, kForbiddenVirtual = 40;

template <typename Function>
void FindIn(void* library, const char* name, Function* function, std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) absl::StrAppend(missing, " ", name);
}

}  // namespace

absl::StatusOr<const Cupti*> LoadCupti(const std::string& library) {
  static Cupti cupti;
  static bool loaded = false;
  if (loaded) return &cupti;
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return absl::UnavailableError(absl::StrCat("CUPTI can't be loaded: ", dlerror()));
  std::string missing;
  const auto find = [&](const char* name, auto* function) { FindIn(handle, name, function, &missing); };
  find("cuptiGetResultString", &cupti.GetResultString);
  find("cuptiProfilerInitialize", &cupti.ProfilerInitialize);
  find("cuptiDeviceGetChipName", &cupti.DeviceGetChipName);
  find("cuptiProfilerGetCounterAvailability", &cupti.ProfilerGetCounterAvailability);
  find("cuptiProfilerHostInitialize", &cupti.ProfilerHostInitialize);
  find("cuptiProfilerHostDeinitialize", &cupti.ProfilerHostDeinitialize);
  find("cuptiProfilerHostGetMetricProperties", &cupti.ProfilerHostGetMetricProperties);
  find("cuptiProfilerHostConfigAddMetrics", &cupti.ProfilerHostConfigAddMetrics);
  find("cuptiProfilerHostGetConfigImageSize", &cupti.ProfilerHostGetConfigImageSize);
  find("cuptiProfilerHostGetConfigImage", &cupti.ProfilerHostGetConfigImage);
  find("cuptiProfilerHostEvaluateToGpuValues", &cupti.ProfilerHostEvaluateToGpuValues);
  find("cuptiRangeProfilerEnable", &cupti.RangeProfilerEnable);
  find("cuptiRangeProfilerDisable", &cupti.RangeProfilerDisable);
  find("cuptiRangeProfilerStart", &cupti.RangeProfilerStart);
  find("cuptiRangeProfilerStop", &cupti.RangeProfilerStop);
  find("cuptiRangeProfilerSetConfig", &cupti.RangeProfilerSetConfig);
  find("cuptiRangeProfilerGetCounterDataSize", &cupti.RangeProfilerGetCounterDataSize);
  find("cuptiRangeProfilerCounterDataImageInitialize", &cupti.RangeProfilerCounterDataImageInitialize);
  find("cuptiRangeProfilerDecodeData", &cupti.RangeProfilerDecodeData);
  find("cuptiRangeProfilerGetCounterDataInfo", &cupti.RangeProfilerGetCounterDataInfo);
  if (!missing.empty()) {
    return absl::UnavailableError(
        absl::StrCat(library, " lacks", missing, ": it is older than CUDA 12.6, or not CUPTI"));
  }
  loaded = true;
  return &cupti;
}

absl::Status CuptiStatus(const Cupti& cupti, CUptiResult result, const char* call) {
  if (result == 0) return absl::OkStatus();
  if (result == kForbidden || result == kForbiddenVirtual) {
    return absl::UnavailableError(
        "counters are forbidden (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES): put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reboot, or run the worker as root");
  }
  if (result == kHardwareBusy || result == kSeveralSubscribers) {
    return absl::UnavailableError("another profiler holds the counters: `dcgmi profile --pause`, or stop it meanwhile");
  }
  const char* text = nullptr;
  cupti.GetResultString(result, &text);
  return absl::UnavailableError(
      absl::StrCat("CUPTI: ", CallName(call), " failed: ", text == nullptr ? "" : text, " (", result, ")"));
}

}  // namespace pawl
