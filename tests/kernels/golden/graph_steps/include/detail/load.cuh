#pragma once

namespace steps {

template <typename Acc>
__device__ inline Acc Load(const float* values, long long at) {
  return static_cast<Acc>(values[at]);
}

}  // namespace steps
