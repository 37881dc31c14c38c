// draft: n = 4194304
// draft: grid = ["ceil_div(n, BLOCK)"]
// draft: arguments = ["n", "a", "x", "y"]
#include <cstdlib>
#include <vector>
__global__ void saxpy(int n, float a, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = a * x[i] + y[i];
}
int main(int argc, char** argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 1 << 22;
  float a = 2.0f;
  float *x, *y;
  cudaMalloc((void**)&x, n * sizeof(float));
  cudaMalloc((void**)&y, n * sizeof(float));
  std::vector<float> h(n, 1.f);
  cudaMemcpy(x, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  int blockSize = 256;
  int numBlocks = (n + blockSize - 1) / blockSize;
  void* args[] = {&n, &a, &x, &y};
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaLaunchKernel((const void*)saxpy, dim3(numBlocks), dim3(blockSize), args, 0, stream);
  cudaStreamSynchronize(stream);
}
