// entry: main
// draft: repeat = "100"
// draft: swap = ["a", "b"]
// draft: grid = ["ceil_div(n, TILE)", "ceil_div(n, TILE)"]
#include <utility>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) exit(1); } while (0)
constexpr int TILE = 32;
__global__ void init(double* a, int n) { int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * TILE + threadIdx.y; if (i < n && j < n) a[j * n + i] = i == j; }
__global__ void jacobi(const double* a, double* b, int n) {
  int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * TILE + threadIdx.y;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1) b[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}
__global__ void norm(const double* a, double* out, int n) {
  __shared__ double s[256];
  double v = 0;
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n * n; k += gridDim.x * blockDim.x) v += a[k] * a[k];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int o = 128; o > 0; o /= 2) { if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }
  if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
int main(int argc, char** argv) {
  const int n = 2048, steps = 100;
  double *a, *b, *r;
  CHECK(cudaMalloc(&a, sizeof(double) * n * n));
  CHECK(cudaMalloc(&b, sizeof(double) * n * n));
  CHECK(cudaMalloc(&r, sizeof(double)));
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  init<<<grid, block>>>(a, n);
  for (int s = 0; s < steps; ++s) { jacobi<<<grid, block>>>(a, b, n); std::swap(a, b); }
  CHECK(cudaMemset(r, 0, sizeof(double)));
  norm<<<64, 256>>>(a, r, n);
  CHECK(cudaDeviceSynchronize());
}
