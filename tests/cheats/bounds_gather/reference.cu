// out = a quarter of the sum of the four entries of the group that an entry is in, one thread an element, in double. Entries
// behind the end count as 0.
extern "C" __global__ void gather_reference(const float* table, const int* index, float* out, int n, int entries) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int first = index[i] / 4 * 4;
  double sum = 0;
  for (int at = first; at < min(first + 4, entries); ++at) sum += table[at];
  out[i] = float(0.25 * sum);
}
