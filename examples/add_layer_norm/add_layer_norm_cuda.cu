// Residual addition fused with layer normalisation, forward, as a PyTorch extension. setup.py builds this file with
// torch.utils.cpp_extension.CUDAExtension.
#include <ATen/AccumulateType.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <tuple>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)

namespace {

constexpr int kWarpSize = 32;
constexpr int kThreads = 128;

template <typename acc_t>
__device__ __forceinline__ acc_t warp_sum(acc_t value) {
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// The sum over the block, in every thread.
template <typename acc_t>
__device__ acc_t block_sum(acc_t value, acc_t* partial) {
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  value = warp_sum(value);
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / kWarpSize ? partial[lane] : acc_t(0);
  return warp_sum(value);
}

// One block a row: residual += x, out = layer_norm(residual) * weight + bias.
template <typename scalar_t, typename acc_t>
__global__ void __launch_bounds__(kThreads, 4)
    add_layer_norm_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ residual,
                          const scalar_t* __restrict__ weight, const scalar_t* __restrict__ bias,
                          scalar_t* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd, int rows,
                          int cols, float eps) {
  __shared__ acc_t partial[kWarpSize];
  const int row = blockIdx.x;
  const int64_t start = static_cast<int64_t>(row) * cols;
  acc_t sum = 0;
#pragma unroll 2
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    const scalar_t value =
        static_cast<scalar_t>(static_cast<acc_t>(residual[start + c]) + static_cast<acc_t>(x[start + c]));
    residual[start + c] = value;
    sum += static_cast<acc_t>(value);
  }
  const acc_t average = block_sum(sum, partial) / cols;
  acc_t squares = 0;
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    const acc_t difference = static_cast<acc_t>(residual[start + c]) - average;
    squares += difference * difference;
  }
  const acc_t scale = rsqrtf(block_sum(squares, partial) / cols + eps);
  if (threadIdx.x == 0) {
    mean[row] = average;
    rstd[row] = scale;
  }
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    const acc_t normal = (static_cast<acc_t>(residual[start + c]) - average) * scale;
    out[start + c] =
        static_cast<scalar_t>(normal * static_cast<acc_t>(weight[c]) + static_cast<acc_t>(bias[c]));
  }
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(at::Tensor x, at::Tensor residual,
                                                                      at::Tensor weight, at::Tensor bias, double eps) {
  CHECK_INPUT(x);
  CHECK_INPUT(residual);
  CHECK_INPUT(weight);
  CHECK_INPUT(bias);
  TORCH_CHECK(x.sizes() == residual.sizes(), "x and residual must have the same shape");
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));

  const int cols = x.size(-1);
  const int rows = x.numel() / cols;
  auto out = at::empty_like(x);
  auto mean = at::empty({rows}, x.options().dtype(at::kFloat));
  auto rstd = at::empty({rows}, x.options().dtype(at::kFloat));
  const auto stream = at::cuda::getCurrentCUDAStream();

  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "add_layer_norm_forward", [&] {
    using acc_t = at::acc_type<scalar_t, true>;
    const dim3 grid(rows), block(kThreads);
    add_layer_norm_kernel<scalar_t, acc_t><<<grid, block, 0, stream>>>(
        x.data_ptr<scalar_t>(), residual.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(),
        out.data_ptr<scalar_t>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), rows, cols, static_cast<float>(eps));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return std::make_tuple(out, mean, rstd);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &add_layer_norm_forward, "residual += x; layer_norm(residual)", py::arg("x"), py::arg("residual"),
        py::arg("weight"), py::arg("bias"), py::arg("eps") = 1e-5);
}
