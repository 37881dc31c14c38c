// The sum of the weights of each of 256 keys, one thread a key, in double.
extern "C" __global__ void add_reference(const int* key, const float* weight, float* out, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += key[i] == int(threadIdx.x) ? double(weight[i]) : 0.0;
  out[threadIdx.x] = float(sum);
}
