// One explicit step; the border keeps its values. Each thread goes down kRows rows of its column.
template <int kBlockX, int kBlockY, int kRows>
__global__ void __launch_bounds__(kBlockX* kBlockY)
    heat_step(const float* __restrict__ field, float* __restrict__ next, int rows, int columns, float rate) {
  const int column = blockIdx.x * kBlockX + threadIdx.x;
  const int first = (blockIdx.y * kBlockY + threadIdx.y) * kRows;
  if (column >= columns || first >= rows) return;
  const bool side = column == 0 || column == columns - 1;
  float above = first > 0 ? field[static_cast<size_t>(first - 1) * columns + column] : 0.0f;
  float here = field[static_cast<size_t>(first) * columns + column];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first + i;
    if (row >= rows) return;
    const size_t at = static_cast<size_t>(row) * columns + column;
    const float below = row + 1 < rows ? field[at + columns] : 0.0f;
    const bool border = side || row == 0 || row == rows - 1;
    next[at] = border ? here : here + rate * (above + below + field[at - 1] + field[at + 1] - 4 * here);
    above = here;
    here = below;
  }
}
