#include "worker/runner/telemetry.h"

#include <dlfcn.h>

#include <cmath>

namespace pawl {
namespace {

// From nvml.h; part of its stable ABI.
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr unsigned long long kIdle = 1;  // the GPU idles between our blocks: no reason to distrust one

struct Nvml {
  int (*Init)();
  int (*HandleByUuid)(const char*, void**);
  int (*ClockInfo)(void*, int, unsigned*);
  int (*MaxClockInfo)(void*, int, unsigned*);
  int (*Temperature)(void*, int, unsigned*);
  int (*PowerUsage)(void*, unsigned*);
  int (*ThrottleReasons)(void*, unsigned long long*);
  int (*DriverVersion)(char*, unsigned);
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

bool SteadyBetween(const v1::GpuState& before, const v1::GpuState& after) {
  if (before.throttle_reasons() != after.throttle_reasons()) return false;
  const double a = before.sm_clock_mhz(), b = after.sm_clock_mhz();
  return a == 0 || b == 0 || std::abs(a - b) <= 0.02 * std::max(a, b);
}

}  // namespace pawl
