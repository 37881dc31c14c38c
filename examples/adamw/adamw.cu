#include <cuda_bf16.h>

namespace optim {

struct AdamWSettings {
  float learning_rate;
  float beta1, beta2;
  float epsilon;
  float weight_decay;
  float correction1, correction2;  // 1 - beta^step
};

__device__ __forceinline__ float Updated(float param, float& m, float& v, float grad, const AdamWSettings& settings) {
  m = settings.beta1 * m + (1 - settings.beta1) * grad;
  v = settings.beta2 * v + (1 - settings.beta2) * grad * grad;
  const float step = (m / settings.correction1) / (sqrtf(v / settings.correction2) + settings.epsilon);
  return param - settings.learning_rate * (step + settings.weight_decay * param);
}

// Each thread updates kItems neighbours, by vector accesses where all of them are there.
template <int kBlock, int kItems>
__global__ void __launch_bounds__(kBlock)
    adamw_step(__nv_bfloat16* __restrict__ params, float* __restrict__ m, float* __restrict__ v,
               const __nv_bfloat16* __restrict__ grads, long long count, AdamWSettings settings) {
  struct alignas(sizeof(__nv_bfloat16) * kItems) Halves {
    __nv_bfloat16 at[kItems];
  };
  struct alignas(sizeof(float) * (kItems < 4 ? kItems : 4)) Floats {
    float at[kItems];
  };
  const long long first = (static_cast<long long>(blockIdx.x) * kBlock + threadIdx.x) * kItems;
  if (first + kItems <= count) {
    Halves param = *reinterpret_cast<Halves*>(params + first);
    const Halves grad = *reinterpret_cast<const Halves*>(grads + first);
    Floats moment = *reinterpret_cast<Floats*>(m + first), square = *reinterpret_cast<Floats*>(v + first);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      param.at[i] = __float2bfloat16(Updated(__bfloat162float(param.at[i]), moment.at[i], square.at[i],
                                             __bfloat162float(grad.at[i]), settings));
    }
    *reinterpret_cast<Halves*>(params + first) = param;
    *reinterpret_cast<Floats*>(m + first) = moment;
    *reinterpret_cast<Floats*>(v + first) = square;
    return;
  }
  for (long long i = first; i < count; ++i) {
    params[i] = __float2bfloat16(Updated(__bfloat162float(params[i]), m[i], v[i], __bfloat162float(grads[i]), settings));
  }
}

}  // namespace optim
