// One step of heat in a box: each inner cell takes the mean of its six neighbours into account, the surface stays. A thread
// has X_EACH neighbouring cells along x and goes Z_EACH cells along z.
constexpr float kCenter = 0.4f, kSide = 0.1f;
constexpr int kWide = BX * X_EACH;

extern "C" __global__ void __launch_bounds__(BX * BY) stencil7(const float* in, float* out, int nx, int ny, int nz) {
  const int x0 = blockIdx.x * kWide + threadIdx.x * X_EACH;
  const int y = blockIdx.y * BY + threadIdx.y;
  const int z0 = blockIdx.z * Z_EACH;
  const long long plane = (long long)nx * ny;
#if TILE
  __shared__ float tile[BY + 2][kWide + 2];
#endif
#if ROLL
  float below[X_EACH], here[X_EACH];
#pragma unroll
  for (int i = 0; i < X_EACH; ++i) {
    const bool inside = x0 + i < nx && y < ny;
    const long long at = (long long)y * nx + x0 + i;
    below[i] = inside && z0 > 0 ? in[at + (z0 - 1) * plane] : 0.0f;
    here[i] = inside && z0 < nz ? in[at + z0 * plane] : 0.0f;
  }
#endif
  for (int z = z0; z < min(z0 + Z_EACH, nz); ++z) {
    const float* level = in + z * plane;
#if TILE
    const int left = blockIdx.x * kWide - 1, top = blockIdx.y * BY - 1;
    for (int i = threadIdx.y * BX + threadIdx.x; i < (BY + 2) * (kWide + 2); i += BX * BY) {
      const int tx = left + i % (kWide + 2), ty = top + i / (kWide + 2);
      const bool there = tx >= 0 && tx < nx && ty >= 0 && ty < ny;
      tile[i / (kWide + 2)][i % (kWide + 2)] = there ? level[(long long)ty * nx + tx] : 0.0f;
    }
    __syncthreads();
#endif
#pragma unroll
    for (int i = 0; i < X_EACH; ++i) {
      const int x = x0 + i;
      if (x >= nx || y >= ny) continue;
      const long long at = (long long)y * nx + x;
#if ROLL
      const float above = z + 1 < nz ? in[at + (z + 1) * plane] : 0.0f;
      const float center = here[i], under = below[i];
      below[i] = here[i];
      here[i] = above;
#else
      const float center = level[at];
#endif
      if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
        out[at + z * plane] = center;
        continue;
      }
#if !ROLL
      const float above = level[at + plane], under = level[at - plane];
#endif
#if TILE
      const int tx = threadIdx.x * X_EACH + i + 1, ty = threadIdx.y + 1;
      const float sides = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
#else
      const float sides = level[at - 1] + level[at + 1] + level[at - nx] + level[at + nx];
#endif
      out[at + z * plane] = kCenter * center + kSide * (sides + above + under);
    }
#if TILE
    __syncthreads();
#endif
  }
}
