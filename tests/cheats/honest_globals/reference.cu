// The entry of each index, one thread an element.
extern "C" __global__ void look_up_reference(const int* index, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = float(double(index[i] + 1u) * (index[i] % 1000) / 16777216.0);
}
