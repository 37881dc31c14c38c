#include <algorithm>

namespace graph {

// distance[i][j] = min(distance[i][j], distance[i][via] + distance[via][j]). Row and column `via` do not change in this
// launch, so that it works in place. Each thread has kRows rows of one column.
template <int kBlockX, int kBlockY, int kRows, bool kStaged>
__global__ void __launch_bounds__(kBlockX* kBlockY) relax(int* distance, int nodes, int via) {
  __shared__ int from_via[kStaged ? kBlockX : 1];
  const int column = blockIdx.x * kBlockX + threadIdx.x;
  const int first = (blockIdx.y * kBlockY + threadIdx.y) * kRows;
  if constexpr (kStaged) {
    if (threadIdx.y == 0 && column < nodes) from_via[threadIdx.x] = distance[via * nodes + column];
    __syncthreads();
  }
  if (column >= nodes) return;
  const int rest = kStaged ? from_via[threadIdx.x] : distance[via * nodes + column];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first + i;
    if (row >= nodes) return;
    int& here = distance[row * nodes + column];
    here = std::min(here, distance[row * nodes + via] + rest);
  }
}

}  // namespace graph
