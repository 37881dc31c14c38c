// Layer norm of every row of a [rows, cols] matrix, one block a row: out = (in - mean) / sqrt(variance + eps) * weight
// + bias. fp16 in memory, fp32 in between.
//
// The row is visited two or three times: for its mean and its variance (together when ONE_PASS), then to write it. The
// packs a thread holds are read from global memory once, the rest of the row again in every visit: a row may have any
// length.
#include <cuda_fp16.h>

constexpr int kWarps = BLOCK / 32;

template <int kWidth>
struct alignas(kWidth * sizeof(__half)) Pack {
  __half at[kWidth];
};

// A thread's share of a row: the packs at threadIdx.x, threadIdx.x + BLOCK and so on.
template <int kWidth>
struct Row {
  const Pack<kWidth>* packs;
  int count;                               // packs of the whole row
  Pack<kWidth> held[HOLD > 0 ? HOLD : 1];  // this thread's first ones

  __device__ Row(const __half* in, int cols) : packs(reinterpret_cast<const Pack<kWidth>*>(in)), count(cols / kWidth) {
#pragma unroll
    for (int h = 0; h < HOLD; ++h) {
      const int i = threadIdx.x + h * BLOCK;
      if (i < count) held[h] = packs[i];
    }
  }

  template <typename Visitor>
  __device__ void Visit(Visitor visit) const {
#pragma unroll
    for (int h = 0; h < HOLD; ++h) {
      const int i = threadIdx.x + h * BLOCK;
      if (i < count) visit(i, held[h]);
    }
    for (int i = threadIdx.x + HOLD * BLOCK; i < count; i += BLOCK) visit(i, packs[i]);
  }
};

__device__ float WarpSum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// Every sum over the block, in every thread. Two calls of one kernel need two turns, which are two shared arrays: warps
// may write the second while others still read the first.
template <int kTurn, int kSums>
__device__ void BlockSum(float (&sums)[kSums]) {
  __shared__ float of_warp[kSums][kWarps];
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    sums[s] = WarpSum(sums[s]);
    if (lane == 0) of_warp[s][threadIdx.x / 32] = sums[s];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kSums; ++s) sums[s] = WarpSum(lane < kWarps ? of_warp[s][lane] : 0.0f);
}

struct Moments {
  float mean;
  float variance;
};

template <int kWidth>
__device__ Moments TwoPasses(const Row<kWidth>& row, int cols) {
  float sum[] = {0.0f};
  row.Visit([&](int, const Pack<kWidth>& pack) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum[0] += __half2float(pack.at[k]);
  });
  BlockSum<0>(sum);
  const float mean = sum[0] / cols;
  float squares[] = {0.0f};
  row.Visit([&](int, const Pack<kWidth>& pack) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float distance = __half2float(pack.at[k]) - mean;
      squares[0] += distance * distance;
    }
  });
  BlockSum<1>(squares);
  return {mean, squares[0] / cols};
}

// Sums of the distances from `near`, an element of the row: the variance is a difference of two squares, which would
// cancel if they were far from 0.
template <int kWidth>
__device__ Moments OnePass(const Row<kWidth>& row, int cols, float near) {
  float sums[] = {0.0f, 0.0f};
  row.Visit([&](int, const Pack<kWidth>& pack) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float distance = __half2float(pack.at[k]) - near;
      sums[0] += distance;
      sums[1] += distance * distance;
    }
  });
  BlockSum<0>(sums);
  const float offset = sums[0] / cols;
  return {near + offset, fmaxf(sums[1] / cols - offset * offset, 0.0f)};
}

template <int kWidth>
__device__ void NormaliseRow(const __half* in, const __half* weight, const __half* bias, __half* out, int cols,
                             float eps) {
  const Row<kWidth> row(in, cols);
  const Moments moments = ONE_PASS ? OnePass(row, cols, __half2float(in[0])) : TwoPasses(row, cols);
  const float scale = rsqrtf(moments.variance + eps);
  const Pack<kWidth>* weights = reinterpret_cast<const Pack<kWidth>*>(weight);
  const Pack<kWidth>* biases = reinterpret_cast<const Pack<kWidth>*>(bias);
  Pack<kWidth>* outs = reinterpret_cast<Pack<kWidth>*>(out);
  row.Visit([&](int i, const Pack<kWidth>& pack) {
    const Pack<kWidth> factor = weights[i];
    const Pack<kWidth> addend = biases[i];
    Pack<kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float value = (__half2float(pack.at[k]) - moments.mean) * scale;
      result.at[k] = __float2half_rn(value * __half2float(factor.at[k]) + __half2float(addend.at[k]));
    }
    outs[i] = result;
  });
}

extern "C" __global__ void layernorm(const __half* __restrict__ in, const __half* __restrict__ weight,
                                     const __half* __restrict__ bias, __half* __restrict__ out, int cols, float eps) {
  in += static_cast<long long>(blockIdx.x) * cols;
  out += static_cast<long long>(blockIdx.x) * cols;
  // Every row starts on a vector boundary only where the length of a row is a multiple of the vector.
  if (cols % VECTOR == 0) {
    NormaliseRow<VECTOR>(in, weight, bias, out, cols, eps);
  } else {
    NormaliseRow<1>(in, weight, bias, out, cols, eps);
  }
}
