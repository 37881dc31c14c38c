namespace club {
__constant__ float weights[8];
}

// next = state + the weighted sum of the differences to all friends.
extern "C" __global__ void gather(const int* offsets, const int* columns, const int* order, const float* state,
                                  float* next, int nodes, int step) {
  const int at = blockIdx.x * BLOCK + threadIdx.x;
  if (at >= nodes) return;
  const int node = order[at];
  float sum = 0;
  for (int edge = offsets[node]; edge < offsets[node + 1]; ++edge) sum += state[columns[edge]] - state[node];
  next[node] = state[node] + club::weights[step % 8] * sum;
}

extern "C" __global__ void damp(float* next, int nodes, int step) {
  const int node = blockIdx.x * BLOCK + threadIdx.x;
  if (node < nodes) next[node] *= 1 - club::weights[(step + 1) % 8];
}
