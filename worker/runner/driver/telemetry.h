#pragma once

#include <string>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Clocks, temperature, power and throttle reasons of one GPU through NVML, loaded at run time. Without NVML every
// state is empty: comparisons then can't be protected against throttling, and say so by their empty states.
class Telemetry {
 public:
  void Open(const std::string& gpu_uuid);
  v1::GpuState Read() const;
  std::string DriverVersion() const;
  void MaxClocks(v1::GpuInfo* gpu) const;

 private:
  void* device_ = nullptr;
};

// Why a pair measured between the two states can't be trusted: throttle reasons or ECC counters that changed, SM clocks
// that differ by more than 2 %, or a GPU that protects itself from heat or a lack of power. Empty: it can.
std::string DisturbanceBetween(const v1::GpuState& before, const v1::GpuState& after);

}  // namespace pawl
