extern "C" __global__ void transpose_table(const float* table, float* by_column) {
  by_column[threadIdx.x % 4 * 16 + threadIdx.x / 4] = table[threadIdx.x];
}
