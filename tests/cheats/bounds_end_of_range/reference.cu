// Linear interpolation in a table at u from 0 to 1, one thread an element. The place in the table is a float, as in the
// kernel: only what is made of it is in double.
extern "C" __global__ void interpolate_reference(const float* table, const float* u, float* out, int n, int entries) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float place = u[i] * (entries - 1);
  const int k = int(place);
  const double part = place - k;
  out[i] = float((1 - part) * table[k] + part * table[k + 1 < entries ? k + 1 : k]);
}
