#pragma once

#include <cstdint>

#include "kernels/plan.h"

namespace pawl {

inline int64_t TensorBytes(const v1::PlanTensor& tensor) { return tensor.elements() * ElementBytes(tensor.type()); }

}  // namespace pawl
