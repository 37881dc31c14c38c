#include <cuda_bf16.h>

struct Settings {
  float learning_rate, beta1, beta2, epsilon, weight_decay, correction1, correction2;
};

extern "C" __global__ void adamw_reference(__nv_bfloat16* params, float* m, float* v, const __nv_bfloat16* grads,
                                           long long count, Settings settings) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double grad = __bfloat162float(grads[i]), param = __bfloat162float(params[i]);
  const double moment = settings.beta1 * static_cast<double>(m[i]) + (1 - static_cast<double>(settings.beta1)) * grad;
  const double square =
      settings.beta2 * static_cast<double>(v[i]) + (1 - static_cast<double>(settings.beta2)) * grad * grad;
  const double step = moment / settings.correction1 / (sqrt(square / settings.correction2) + settings.epsilon);
  params[i] = __double2bfloat16(param - settings.learning_rate * (step + settings.weight_decay * param));
  m[i] = static_cast<float>(moment);
  v[i] = static_cast<float>(square);
}
