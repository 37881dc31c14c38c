// draft: nx = 256
// draft: shape = ["nz", "ny", "nx"]
// draft: fields = ["nx", "ny", "nz", "dx"]
// draft: grid = ["ceil_div(nx, BLOCK_X)", "ceil_div(ny, BLOCK_Y)", "nz"]
// draft: name = "coeff"
#include "header_split.cuh"
__constant__ float coeff[4];
__global__ void laplace(const float* __restrict__ u, float* __restrict__ v, Grid g, float c) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= g.nx - 1 || y >= g.ny - 1 || z >= g.nz - 1) return;
  float s = coeff[0] * u[idx3(g, x, y, z)];
  s += coeff[1] * (u[idx3(g, x - 1, y, z)] + u[idx3(g, x + 1, y, z)]);
  v[idx3(g, x, y, z)] = c * s;
}
int main(int argc, char** argv) {
  Grid g{256, 256, 128, 0.1f};
  if (argc > 3) { g.nx = atoi(argv[1]); g.ny = atoi(argv[2]); g.nz = atoi(argv[3]); }
  size_t n = (size_t)g.nx * g.ny * g.nz;
  float h[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(coeff, h, sizeof(h));
  float *u, *v;
  cudaMalloc(&u, n * sizeof(float)); cudaMalloc(&v, n * sizeof(float));
  dim3 b(32, 8), gr((g.nx + b.x - 1) / b.x, (g.ny + b.y - 1) / b.y, g.nz);
  cudaStream_t s; cudaStreamCreate(&s);
  laplace<<<gr, b, 0, s>>>(u, v, g, 0.25f);
}
