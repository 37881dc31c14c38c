// Jacobi sweeps with exchanged buffers, and a tiled product that takes its parameters as a struct.
#include <cuda_runtime.h>

#include <utility>

constexpr int TILE = 32;

struct Product {
  const float* a;
  const float* b;
  float* c;
  int m, n, k;
  float alpha;
};

__global__ void product(Product p) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < (p.k + TILE - 1) / TILE; ++t) {
    const int inner = t * TILE + threadIdx.x;
    left[threadIdx.y][threadIdx.x] = row < p.m && inner < p.k ? p.a[row * p.k + inner] : 0.f;
    right[threadIdx.y][threadIdx.x] = p.b[(t * TILE + threadIdx.y) * p.n + col];
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < p.m && col < p.n) p.c[row * p.n + col] = p.alpha * sum;
}

__global__ void sweep(const double* in, double* out, int nx, int ny) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  out[y * nx + x] = 0.25 * (in[y * nx + x - 1] + in[y * nx + x + 1] + in[(y - 1) * nx + x] + in[(y + 1) * nx + x]);
}

void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  Product p{a, b, c, m, n, k, 1.0f};
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  product<<<grid, block>>>(p);
}

void relax(double* ping, double* pong, int nx, int ny, int sweeps) {
  const dim3 block(32, 8);
  const dim3 grid((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y);
  for (int i = 0; i < sweeps; ++i) {
    sweep<<<grid, block>>>(ping, pong, nx, ny);
    std::swap(ping, pong);
  }
}
