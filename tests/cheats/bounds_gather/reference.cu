// out = the mean of an entry and the next, or of the last with itself, one thread an element, in double.
extern "C" __global__ void gather_reference(const float* table, const int* index, float* out, int n, int entries) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int k = index[i];
  out[i] = float(0.5 * table[k] + 0.5 * table[k + 1 < entries ? k + 1 : k]);
}
