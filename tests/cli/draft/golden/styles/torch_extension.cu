// draft: entry = "ext::softmax_dropless_kernel<float, float, KTHREADS>"
// draft: block = ["KTHREADS"]
// draft: grid = ["rows"]
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
namespace ext {
template <typename scalar_t, typename acc_t, int THREADS>
__global__ void softmax_dropless_kernel(const scalar_t* __restrict__ in, scalar_t* __restrict__ out, const int64_t cols, const float scale) {
  const int64_t row = blockIdx.x;
  __shared__ acc_t red[THREADS / 32];
  acc_t m = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += THREADS) m = max(m, static_cast<acc_t>(in[row * cols + c]) * scale);
  for (int o = 16; o > 0; o >>= 1) m = max(m, __shfl_xor_sync(0xffffffff, m, o));
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = m;
  __syncthreads();
  m = red[0];
  for (int i = 1; i < THREADS / 32; ++i) m = max(m, red[i]);
  acc_t s = 0;
  for (int64_t c = threadIdx.x; c < cols; c += THREADS) s += expf(static_cast<acc_t>(in[row * cols + c]) * scale - m);
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < THREADS / 32; ++i) s += red[i];
  for (int64_t c = threadIdx.x; c < cols; c += THREADS)
    out[row * cols + c] = static_cast<scalar_t>(expf(static_cast<acc_t>(in[row * cols + c]) * scale - m) / s);
}
}  // namespace ext
torch::Tensor softmax(torch::Tensor input, double scale) {
  TORCH_CHECK(input.is_cuda());
  const at::cuda::OptionalCUDAGuard guard(device_of(input));
  auto x = input.contiguous();
  auto out = torch::empty_like(x);
  const int64_t cols = x.size(-1), rows = x.numel() / cols;
  constexpr int kThreads = 256;
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softmax", [&] {
    using acc_t = at::acc_type<scalar_t, true>;
    ext::softmax_dropless_kernel<scalar_t, acc_t, kThreads><<<rows, kThreads, 0, stream>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), cols, static_cast<float>(scale));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
