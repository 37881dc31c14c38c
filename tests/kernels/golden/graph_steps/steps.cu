#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include "include/graph.cuh"

namespace steps {

constexpr int kTableRows = 4;

template <typename Acc, int kUnroll, bool kStaged>
__global__ void advance(Graph graph, const Tables* tables, const float* state, float* next, const unsigned* order,
                        const unsigned char* segment, const __nv_bfloat16* bias, int nodes, __half damping, int step) {
  __shared__ float staged[64];
  if constexpr (kStaged) {
    for (int i = threadIdx.x; i < 64; i += blockDim.x) staged[i] = tables->by_column[i];
    __syncthreads();
  }
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= nodes) return;
  const unsigned node = order[at];
  Acc sum = 0;
#pragma unroll kUnroll
  for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; ++edge) {
    sum += Load<Acc>(state, graph.columns[edge]) * static_cast<Acc>(__half2float(graph.weight[edge]));
  }
  const int place = step % kTableRows * 16 + segment[node];
  const float scale = kStaged ? staged[place] : tables->by_column[place];
  next[node] = state[node] + __half2float(damping) * (scale * static_cast<float>(sum) +
                                                      __bfloat162float(bias[segment[node]]));
}

}  // namespace steps

extern "C" __global__ void count_visits(const unsigned* order, int* visits, int nodes) {
  const auto grid = cooperative_groups::this_grid();
  if (grid.thread_rank() == 0) *visits = 0;
  grid.sync();
  for (int at = grid.thread_rank(); at < nodes; at += grid.size()) {
    if (order[at] < static_cast<unsigned>(nodes)) atomicAdd(visits, 1);
  }
}
