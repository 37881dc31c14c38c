// Rows of a table by 64-bit indices; the host has a wrapper of its own.
#include <cstdint>
#include <cuda_bf16.h>

namespace nn {

template <typename T>
__global__ void gather_rows(T* __restrict__ out, const T* __restrict__ table, const int64_t* __restrict__ ids, int count,
                            int width) {
  const int row = blockIdx.x;
  const int64_t id = ids[row];
  for (int c = threadIdx.x; c < width; c += blockDim.x) out[row * width + c] = table[id * width + c];
}

void embed(__nv_bfloat16* out, const __nv_bfloat16* table, const int64_t* ids, int count, int width,
           cudaStream_t stream) {
  gather_rows<__nv_bfloat16><<<count, 128, 0, stream>>>(out, table, ids, count, width);
}

}  // namespace nn
