#include "worker/runner/driver/telemetry.h"

#include <dlfcn.h>

#include <cmath>

namespace pawl {
namespace {

// From nvml.h; part of its stable ABI.
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kUncorrected = 1, kVolatile = 0;
constexpr unsigned long long kIdle = 1;  // the GPU idles between our blocks: no reason to distrust one
// Slowdowns by which the GPU protects itself. A power cap is not among them: some GPUs work at it all the time.
constexpr unsigned long long kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40, kPowerBrake = 0x80;

struct Nvml {
  int (*Init)();
  int (*HandleByUuid)(const char*, void**);
  int (*ClockInfo)(void*, int, unsigned*);
  int (*MaxClockInfo)(void*, int, unsigned*);
  int (*Temperature)(void*, int, unsigned*);
  int (*PowerUsage)(void*, unsigned*);
  int (*ThrottleReasons)(void*, unsigned long long*);
  int (*DriverVersion)(char*, unsigned);
  // Not on every driver and GPU.
  int (*EccErrors)(void*, int, int, unsigned long long*) = nullptr;
  int (*RemappedRows)(void*, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*RetirementPending)(void*, int*) = nullptr;
};

const Nvml* LoadNvml() {
  static Nvml nvml;
  static const bool loaded = [] {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    bool all = true;
    auto find = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      all = all && *function != nullptr;
    };
    find("nvmlInit_v2", &nvml.Init);
    find("nvmlDeviceGetHandleByUUID", &nvml.HandleByUuid);
    find("nvmlDeviceGetClockInfo", &nvml.ClockInfo);
    find("nvmlDeviceGetMaxClockInfo", &nvml.MaxClockInfo);
    find("nvmlDeviceGetTemperature", &nvml.Temperature);
    find("nvmlDeviceGetPowerUsage", &nvml.PowerUsage);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.ThrottleReasons);
    find("nvmlSystemGetDriverVersion", &nvml.DriverVersion);
    const bool needed = all;
    find("nvmlDeviceGetTotalEccErrors", &nvml.EccErrors);
    find("nvmlDeviceGetRemappedRows", &nvml.RemappedRows);
    find("nvmlDeviceGetRetiredPagesPendingStatus", &nvml.RetirementPending);
    all = needed;
    return all && nvml.Init() == 0;
  }();
  return loaded ? &nvml : nullptr;
}

}  // namespace

void Telemetry::Open(const std::string& gpu_uuid) {
  const Nvml* nvml = LoadNvml();
  if (nvml == nullptr || nvml->HandleByUuid(gpu_uuid.c_str(), &device_) != 0) device_ = nullptr;
}

v1::GpuState Telemetry::Read() const {
  v1::GpuState state;
  if (device_ == nullptr) return state;
  const Nvml& nvml = *LoadNvml();
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (nvml.ClockInfo(device_, kClockSm, &value) == 0) state.set_sm_clock_mhz(value);
  if (nvml.ClockInfo(device_, kClockMemory, &value) == 0) state.set_memory_clock_mhz(value);
  if (nvml.Temperature(device_, 0, &value) == 0) state.set_temperature_c(value);
  if (nvml.PowerUsage(device_, &value) == 0) state.set_power_mw(value);
  if (nvml.ThrottleReasons(device_, &reasons) == 0) state.set_throttle_reasons(reasons & ~kIdle);
  unsigned long long errors = 0;
  if (nvml.EccErrors != nullptr && nvml.EccErrors(device_, kUncorrected, kVolatile, &errors) == 0) {
    state.set_ecc_errors(static_cast<int64_t>(errors));
  }
  unsigned corrected = 0, uncorrected = 0, rows_pending = 0, failed = 0;
  int pages_pending = 0;
  if (nvml.RemappedRows != nullptr &&
      nvml.RemappedRows(device_, &corrected, &uncorrected, &rows_pending, &failed) != 0) {
    rows_pending = 0;
  }
  if (nvml.RetirementPending != nullptr && nvml.RetirementPending(device_, &pages_pending) != 0) pages_pending = 0;
  state.set_retirement_pending(rows_pending != 0 || pages_pending != 0);
  return state;
}

std::string Telemetry::DriverVersion() const {
  char text[96] = "";
  const Nvml* nvml = LoadNvml();
  if (nvml == nullptr || nvml->DriverVersion(text, sizeof(text)) != 0) return "";
  return text;
}

void Telemetry::MaxClocks(v1::GpuInfo* gpu) const {
  if (device_ == nullptr) return;
  unsigned value = 0;
  if (LoadNvml()->MaxClockInfo(device_, kClockSm, &value) == 0) gpu->set_max_sm_clock_mhz(value);
  if (LoadNvml()->MaxClockInfo(device_, kClockMemory, &value) == 0) gpu->set_max_memory_clock_mhz(value);
}

std::string DisturbanceBetween(const v1::GpuState& before, const v1::GpuState& after) {
  if (after.ecc_errors() > before.ecc_errors()) return "an uncorrected ECC error: reset the GPU, or take it out of use";
  if (after.retirement_pending() && !before.retirement_pending()) {
    return "memory of the GPU failed and waits to be retired: reset the GPU";
  }
  const uint64_t both = before.throttle_reasons() & after.throttle_reasons();
  if (both & (kHwThermal | kSwThermal)) return "the GPU is too hot and throttles: let it cool down";
  if (both & (kHwSlowdown | kPowerBrake)) return "the GPU's hardware slows it down: check its power supply and cooling";
  if (before.throttle_reasons() != after.throttle_reasons()) {
    return "throttle reasons changed: let the GPU cool down, or stop other work on it";
  }
  const double a = before.sm_clock_mhz(), b = after.sm_clock_mhz();
  if (a == 0 || b == 0 || std::abs(a - b) <= 0.02 * std::max(a, b)) return "";
  return "the SM clock changed: let the GPU cool down, or stop other work on it";
}

}  // namespace pawl
