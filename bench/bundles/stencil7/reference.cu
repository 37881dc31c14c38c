extern "C" __global__ void stencil_reference(const float* in, float* out, int nx, int ny, int nz) {
  const long long plane = (long long)nx * ny, i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= plane * nz) return;
  const int x = int(i % nx), y = int(i / nx % ny), z = int(i / plane);
  if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
    out[i] = in[i];
    return;
  }
  const double sides = double(in[i - 1]) + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane];
  out[i] = float(0.4 * in[i] + 0.1 * sides);
}
