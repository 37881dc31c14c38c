#pragma once

__device__ double Differences(const int* offsets, const int* columns, const double* state, int node) {
  double sum = 0;
  for (int edge = offsets[node]; edge < offsets[node + 1]; ++edge) sum += state[columns[edge]] - state[node];
  return sum;
}
