// nvcc -cubin -arch=sm_90a parameters.cu: entries with parameters of several sizes, and one without.
struct Big { double x[9]; };
extern "C" __global__ void five(const float* a, const float* b, float* c, int n, float s) { c[n] = a[0] + b[0] * s; }
extern "C" __global__ void none() {}
extern "C" __global__ void mixed(int n, double d, float* out, char small, Big big) { out[n] = d + small + big.x[3]; }
template <typename T> __global__ void other(T* x) { *x = 1; }
template __global__ void other<int>(int*);
