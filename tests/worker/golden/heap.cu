extern "C" __global__ void keep(char** x) {
  free(x[1]);
  x[0] = (char*)malloc(100);
  printf("%p\n", x[0]);
}
