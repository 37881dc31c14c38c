#include "reference/sum.cuh"

static __constant__ float weights[8];

extern "C" __global__ void steps_reference(const int* offsets, const int* columns, float* state, int nodes, int steps) {
  double before[34], after[34];
  for (int node = 0; node < nodes; ++node) before[node] = state[node];
  for (int step = 0; step < steps; ++step) {
    for (int node = 0; node < nodes; ++node) {
      after[node] = before[node] + weights[step % 8] * Differences(offsets, columns, before, node);
      after[node] *= 1 - weights[(step + 1) % 8];
    }
    for (int node = 0; node < nodes; ++node) before[node] = after[node];
  }
  for (int node = 0; node < nodes; ++node) state[node] = static_cast<float>(before[node]);
}
