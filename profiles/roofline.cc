#include "profiles/roofline.h"

#include <algorithm>

namespace pawl {
namespace {

int BytesOf(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
      return 2;
    case v1::DATA_TYPE_F64:
      return 8;
    default:
      return 4;
  }
}

double TensorBytes(const v1::Plan& plan, v1::TensorRole role) {
  double bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() == role) bytes += static_cast<double>(tensor.elements()) * BytesOf(tensor.type());
  }
  return bytes;
}

}  // namespace

double RooflineFloorUs(const v1::Plan& plan, const GpuSpec& gpu, bool tensor_cores, v1::TimingMode mode) {
  const double peak_tflops = tensor_cores ? gpu.fp16_tensor_tflops : gpu.fp32_tflops;
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
