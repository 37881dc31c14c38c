// Every second step goes to this buffer: the reference has no scratch of its own.
__device__ float other[static_cast<size_t>(SIZE_ROWS) * SIZE_COLUMNS];

extern "C" __global__ void heat_reference(float* field, float rate, int step) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= SIZE_COLUMNS || row >= SIZE_ROWS) return;
  const float* from = step % 2 == 0 ? field : other;
  float* to = step % 2 == 0 ? other : field;
  const size_t at = static_cast<size_t>(row) * SIZE_COLUMNS + column;
  double value = from[at];
  if (row > 0 && row < SIZE_ROWS - 1 && column > 0 && column < SIZE_COLUMNS - 1) {
    value += rate * (static_cast<double>(from[at - SIZE_COLUMNS]) + from[at + SIZE_COLUMNS] + from[at - 1] +
                     from[at + 1] - 4 * value);
  }
  to[at] = static_cast<float>(value);
}

extern "C" __global__ void copy_back(float* field) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= SIZE_COLUMNS || row >= SIZE_ROWS) return;
  const size_t at = static_cast<size_t>(row) * SIZE_COLUMNS + column;
  field[at] = other[at];
}
