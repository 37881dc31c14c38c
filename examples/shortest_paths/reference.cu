extern "C" __global__ void relax_reference(int* distance, int nodes, int via) {
  const int row = blockIdx.x;
  for (int column = threadIdx.x; column < nodes; column += blockDim.x) {
    const int around = distance[row * nodes + via] + distance[via * nodes + column];
    if (around < distance[row * nodes + column]) distance[row * nodes + column] = around;
  }
}
