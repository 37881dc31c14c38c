#include <cuda_runtime.h>

#include <cstdio>
using u32 = unsigned;
__device__ __forceinline__ u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}
// Atomics of the whole grid on a few addresses.
extern "C" __global__ void hist_global_few(const u32* in, u32* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] % 16], 1u);
}
extern "C" __global__ void hist_global_many(const u32* in, u32* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[mix(in[i]) % (1 << 20)], 1u);
}
// The result is used: atom, not red.
extern "C" __global__ void slots_global(const u32* in, u32* bins, u32* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = atomicAdd(&bins[in[i] % 16], 1u);
}
extern "C" __global__ void hist_shared_few(const u32* in, u32* bins, int n) {
  __shared__ u32 s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[in[i] % 2], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
extern "C" __global__ void hist_shared_many(const u32* in, u32* bins, int n) {
  __shared__ u32 s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[mix(in[i]) % 256], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
extern "C" __global__ void float_atomics(const u32* in, float* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] % 64], 1.0f);
}
extern "C" __global__ void integer_work(const u32* in, u32* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    u32 a = in[i], b = i, c = a ^ b, d = a + b;
    for (int k = 0; k < 64; ++k) {
      a = mix(a) + k;
      b = (b << 3) ^ (b >> 5) ^ a;
      c = min(c, a) + b;
      d = max(d, b) ^ c;
    }
    out[i] = a ^ b ^ c ^ d;
  }
}
extern "C" __global__ void float_work(const u32* in, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float a = in[i], b = i, c = 1, d = 2;
    for (int k = 0; k < 128; ++k) {
      a = fmaf(a, .99f, .1f);
      b = fmaf(b, .98f, .2f);
      c = fmaf(c, .97f, .3f);
      d = fmaf(d, .96f, .4f);
    }
    out[i] = a + b + c + d;
  }
}
extern "C" __global__ void special_work(const u32* in, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float a = in[i] * 1e-9f, b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < 32; ++k) {
      a = __expf(-a);
      b = __sinf(b);
      c = __expf(-c);
      d = __cosf(d);
    }
    out[i] = a + b + c + d;
  }
}
extern "C" __global__ void double_work(const u32* in, double* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double a = in[i], b = i;
    for (int k = 0; k < 32; ++k) {
      a = fma(a, .99, .1);
      b = fma(b, .98, .2);
    }
    out[i] = a + b;
  }
}
extern "C" __global__ void gather_far(const u32* in, u32* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    u32 s = 0;
    for (int k = 0; k < 8; ++k) s += in[mix(i * 8 + k) % (4u << 20)];
    out[i] = s;
  }
}
extern "C" __global__ void gather_near(const u32* in, u32* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    u32 s = 0;
    for (int k = 0; k < 8; ++k) s += in[mix(i * 8 + k) % 4096];
    out[i] = s;
  }
}
extern "C" __global__ void stride_camp(const u32* in, u32* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 s = 0;
  for (int k = 0; k < 64; ++k) s += in[(size_t)(t * 64 + k) * 1024 % (64u << 20)];
  out[t] = s;
}
extern "C" __global__ void tail_big(const u32* in, float* out, int n) {
  float a = in[threadIdx.x];
  for (int k = 0; k < 20000; ++k) a = fmaf(a, .99f, .1f);
  out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
int main() {
  int n = 1 << 24;
  u32 *in, *bins, *out;
  cudaMalloc(&in, size_t(256) << 20);
  cudaMalloc(&bins, 8 << 20);
  cudaMalloc(&out, size_t(256) << 20);
  u32* h = new u32[64 << 20];
  for (size_t i = 0; i < (64u << 20); ++i) h[i] = u32(i * 2654435761u) >> 7;
  cudaMemcpy(in, h, size_t(256) << 20, cudaMemcpyHostToDevice);
  cudaMemset(bins, 0, 8 << 20);
  int g = 132 * 8, b = 256;
  hist_global_few<<<g, b>>>(in, bins, n);
  hist_global_many<<<g, b>>>(in, bins, n);
  slots_global<<<g, b>>>(in, bins, out, n);
  hist_shared_few<<<g, b>>>(in, bins, n);
  hist_shared_many<<<g, b>>>(in, bins, n);
  float_atomics<<<g, b>>>(in, (float*)bins, n);
  integer_work<<<g, b>>>(in, out, n);
  float_work<<<g, b>>>(in, (float*)out, n);
  special_work<<<g, b>>>(in, (float*)out, n);
  double_work<<<g, b>>>(in, (double*)out, n);
  gather_far<<<g, b>>>(in, out, n);
  gather_near<<<g, b>>>(in, out, n);
  stride_camp<<<g, b>>>(in, out, n);
  tail_big<<<265, 1024>>>(in, (float*)out, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
