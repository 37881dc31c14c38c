// out[r, c] is a[r] b[c], one block a row.
extern "C" __global__ void outer_reference(const float* a, const float* b, float* out, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[(long long)blockIdx.x * cols + c] = float(double(a[blockIdx.x]) * b[c]);
  }
}
