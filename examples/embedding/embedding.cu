#include <cuda_fp16.h>

#include <cstdint>

namespace embed {

template <int kVector>
struct alignas(sizeof(__half) * kVector) Pack {
  __half at[kVector];
};

// Writes that are not read again soon need not stay in the caches.
template <bool kStreaming, typename Packed>
__device__ __forceinline__ void Store(Packed* to, const Packed& value) {
  if constexpr (kStreaming && sizeof(Packed) == 16) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&value));
  } else if constexpr (kStreaming && sizeof(Packed) == 8) {
    __stcs(reinterpret_cast<uint2*>(to), *reinterpret_cast<const uint2*>(&value));
  } else if constexpr (kStreaming && sizeof(Packed) == 4) {
    __stcs(reinterpret_cast<unsigned*>(to), *reinterpret_cast<const unsigned*>(&value));
  } else {
    *to = value;
  }
}

// out[t] = table[tokens[t]] + positions[t % positions]. Each block writes kRows rows.
template <int kThreads, int kVector, int kRows, bool kStreaming>
__global__ void __launch_bounds__(kThreads)
    lookup(const int64_t* __restrict__ tokens, const __half* __restrict__ table, const __half* __restrict__ positions,
           __half* __restrict__ out, int count, int position_count, int width) {
  using Packed = Pack<kVector>;
  const int packs = width / kVector;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const int token = blockIdx.x * kRows + row;
    if (token >= count) return;
    const Packed* from = reinterpret_cast<const Packed*>(table + tokens[token] * width);
    const Packed* add = reinterpret_cast<const Packed*>(positions + static_cast<int64_t>(token % position_count) * width);
    Packed* to = reinterpret_cast<Packed*>(out + static_cast<int64_t>(token) * width);
    for (int i = threadIdx.x; i < packs; i += kThreads) {
      Packed value = from[i];
      const Packed offset = add[i];
#pragma unroll
      for (int j = 0; j < kVector; ++j) value.at[j] = __hadd(value.at[j], offset.at[j]);
      Store<kStreaming>(to + i, value);
    }
  }
}

}  // namespace embed
