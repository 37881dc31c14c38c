#include "profiles/roofline.h"

#include <algorithm>

#include "base/elements/element_bits.h"

namespace pawl {
namespace {

// An inout is read and written.
double TensorBytes(const v1::Plan& plan, v1::TensorRole role) {
  double bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() != role && tensor.role() != v1::TENSOR_ROLE_INOUT) continue;
    bytes += static_cast<double>(tensor.elements()) * ElementBits(tensor.type()) / 8;
  }
  return bytes;
}

// How much faster than at 16 bits the arithmetic may be: the units double their rate each time the operands halve.
double RateOfNarrowTypes(const v1::Plan& plan) {
  int narrowest = 16;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    const bool read = tensor.role() == v1::TENSOR_ROLE_INPUT || tensor.role() == v1::TENSOR_ROLE_INOUT;
    if (read) narrowest = std::min(narrowest, ElementBits(tensor.type()));
  }
  return 16.0 / narrowest;
}

}  // namespace

double RooflineFloorUs(const v1::Plan& plan, const GpuSpec& gpu, bool tensor_cores, v1::TimingMode mode) {
  const double peak_tflops = (tensor_cores ? gpu.fp16_tensor_tflops : gpu.fp32_tflops) * RateOfNarrowTypes(plan);
  double floor_us = peak_tflops > 0 ? plan.flops() / (peak_tflops * 1e6) : 0;
  if (gpu.l2_gb_s > 0) floor_us = std::max(floor_us, plan.bytes() / (gpu.l2_gb_s * 1e3));

  // Scratch is the variant's own choice: what a call must touch are inputs, outputs, or less if [work] says so.
  const double l2 = static_cast<double>(gpu.info.l2_bytes());
  const double outputs = TensorBytes(plan, v1::TENSOR_ROLE_OUTPUT);
  const double working_set = std::min(plan.bytes(), outputs + TensorBytes(plan, v1::TENSOR_ROLE_INPUT));
  const bool cold = mode == v1::TIMING_MODE_COLD;
  if (gpu.dram_gb_s > 0 && (cold || working_set > 2 * l2)) {
    const double in_l2 = cold ? std::min(outputs, l2) : l2;
    floor_us = std::max(floor_us, (plan.bytes() - in_l2) / (gpu.dram_gb_s * 1e3));
  }
  return floor_us;
}

}  // namespace pawl
