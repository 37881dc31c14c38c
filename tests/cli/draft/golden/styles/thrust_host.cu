// draft: shared = "BLOCK * 16"
// draft: type: bytes of Particle, 16 each
// draft: compiler = "nvcc"
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>
struct Particle { float x, y, z, m; };
__global__ void forces(const Particle* p, float3* f, int n) {
  extern __shared__ Particle sh[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float3 acc = {0, 0, 0};
  Particle me = i < n ? p[i] : Particle{0, 0, 0, 0};
  for (int t = 0; t < gridDim.x; ++t) {
    int j = t * blockDim.x + threadIdx.x;
    sh[threadIdx.x] = j < n ? p[j] : Particle{0, 0, 0, 0};
    __syncthreads();
    for (int k = 0; k < blockDim.x; ++k) {
      float dx = sh[k].x - me.x, dy = sh[k].y - me.y, dz = sh[k].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);
      float s = sh[k].m * r * r * r;
      acc.x += dx * s; acc.y += dy * s; acc.z += dz * s;
    }
    __syncthreads();
  }
  if (i < n) f[i] = acc;
}
int main() {
  const int N = 16384;
  thrust::host_vector<Particle> h(N);
  thrust::device_vector<Particle> d = h;
  thrust::device_vector<float3> f(N);
  forces<<<(N + 255) / 256, 256, 256 * sizeof(Particle)>>>(thrust::raw_pointer_cast(d.data()), thrust::raw_pointer_cast(f.data()), N);
  cudaDeviceSynchronize();
}
