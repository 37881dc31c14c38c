// Declarations that a parser needs to make sense of CUDA and PyTorch sources without their headers. Nothing here is
// ever compiled to code: only signatures are read.
#pragma once
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __shared__
#define __constant__ static
#define __managed__ static
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#define __restrict __restrict__

typedef decltype(sizeof(0)) size_t;
typedef long ptrdiff_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long ssize_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

#define PAWL_VECTOR(T, name) \
  struct name##1 {           \
    T x;                     \
  };                         \
  struct name##2 {           \
    T x, y;                  \
  };                         \
  struct name##3 {           \
    T x, y, z;               \
  };                         \
  struct name##4 {           \
    T x, y, z, w;            \
  };
PAWL_VECTOR(char, char)
PAWL_VECTOR(unsigned char, uchar)
PAWL_VECTOR(short, short)
PAWL_VECTOR(unsigned short, ushort)
PAWL_VECTOR(int, int)
PAWL_VECTOR(unsigned int, uint)
PAWL_VECTOR(long, long)
PAWL_VECTOR(unsigned long, ulong)
PAWL_VECTOR(long long, longlong)
PAWL_VECTOR(unsigned long long, ulonglong)
PAWL_VECTOR(float, float)
PAWL_VECTOR(double, double)
#undef PAWL_VECTOR
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern int warpSize;

struct __half {
  unsigned short x;
};
struct __half2 {
  __half x, y;
};
struct __nv_bfloat16 {
  unsigned short x;
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
struct __nv_fp8_e4m3 {
  unsigned char x;
};
struct __nv_fp8_e5m2 {
  unsigned char x;
};
struct __nv_fp8x2_e4m3 {
  unsigned short x;
};
struct __nv_fp8x4_e4m3 {
  unsigned int x;
};
struct __nv_fp8x2_e5m2 {
  unsigned short x;
};
struct __nv_fp8x4_e5m2 {
  unsigned int x;
};
struct __nv_fp4_e2m1 {
  unsigned char x;
};
typedef float2 cuComplex;
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaError_t { cudaSuccess };
struct cudaDeviceProp {
  int multiProcessorCount, maxThreadsPerBlock;
  size_t sharedMemPerBlock;
};
struct curandStateXORWOW;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;
struct CUtensorMap {
  alignas(64) unsigned long opaque[16];
};

namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
template <typename T>
struct vector {};
template <typename... T>
struct tuple {};
template <typename T>
struct optional {};
template <typename A, typename B>
struct pair {
  A first;
  B second;
};
template <typename T, size_t N>
struct array {
  T data[N];
};
template <typename K, typename V>
struct map;
template <typename K, typename V>
struct unordered_map;
template <typename T>
struct function;
template <typename T>
struct unique_ptr;
template <typename T>
struct shared_ptr;
template <bool B, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  using type = T;
};
template <bool B, typename T = void>
using enable_if_t = typename enable_if<B, T>::type;
template <typename A, typename B>
struct is_same {
  static constexpr bool value = false;
};
template <typename A>
struct is_same<A, A> {
  static constexpr bool value = true;
};
template <typename A, typename B>
inline constexpr bool is_same_v = is_same<A, B>::value;
template <bool B, typename X, typename Y>
struct conditional {
  using type = X;
};
template <typename X, typename Y>
struct conditional<false, X, Y> {
  using type = Y;
};
template <bool B, typename X, typename Y>
using conditional_t = typename conditional<B, X, Y>::type;
struct string {};
struct string_view {};
template <typename T>
struct complex {
  T re, im;
};
}  // namespace std
namespace cuda {
namespace std {
using namespace ::std;
}
}  // namespace cuda
namespace thrust {
template <typename T>
struct device_vector;
template <typename T>
struct complex {
  T re, im;
};
}  // namespace thrust

namespace c10 {
struct Half {
  unsigned short x;
};
struct BFloat16 {
  unsigned short x;
};
struct Float8_e4m3fn {
  unsigned char x;
};
struct Float8_e5m2 {
  unsigned char x;
};
template <typename T>
struct complex {
  T re, im;
};
template <typename T>
struct optional;
template <typename T>
struct ArrayRef;
using IntArrayRef = ArrayRef<int64_t>;
struct Device;
enum class ScalarType : signed char;
}  // namespace c10
namespace at {
using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e5m2;
using c10::Half;
using c10::IntArrayRef;
using c10::ScalarType;
struct Tensor {};
struct TensorOptions {};
struct PhiloxCudaState {};
using TensorList = c10::ArrayRef<Tensor>;
template <typename T>
struct RestrictPtrTraits {
  typedef T* PtrType;
};
template <typename T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = long>
struct PackedTensorAccessor;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
struct PackedTensorAccessor32;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
struct PackedTensorAccessor64;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = long>
struct GenericPackedTensorAccessor;
template <typename T, size_t N>
struct TensorAccessor;
template <typename T, bool is_cuda>
struct AccumulateType {
  using type = float;
};
template <typename T, bool is_cuda = true>
using acc_type = typename AccumulateType<T, is_cuda>::type;
template <typename T>
using opmath_type = float;
namespace cuda {
namespace detail {
template <typename T, typename I>
struct TensorInfo;
}
struct CUDAStream;
}  // namespace cuda
}  // namespace at
namespace torch {
using namespace at;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using at::Tensor;
struct TensorOptions;
using ScalarType = c10::ScalarType;
namespace autograd {
struct variable_list;
}
}  // namespace torch
#define C10_DEVICE
#define C10_HOST
#define C10_HOST_DEVICE
#define C10_LAUNCH_BOUNDS_1(...)
#define C10_LAUNCH_BOUNDS_2(...)
#define CUTLASS_DEVICE inline
#define CUTLASS_HOST_DEVICE inline
#define CUDA_KERNEL_LOOP(i, n) for (int i = 0; i < (n); ++i)
#define PYBIND11_MODULE(name, variable) void pawl_python_module(int variable)
#define TORCH_LIBRARY(name, variable) void pawl_torch_library_##name(int variable)
#define TORCH_LIBRARY_FRAGMENT(name, variable) void pawl_torch_fragment_##name(int variable)
#define TORCH_LIBRARY_IMPL(name, key, variable) void pawl_torch_impl_##name##_##key(int variable)

namespace cooperative_groups {
struct thread_group;
struct thread_block;
struct grid_group;
struct cluster_group;
struct coalesced_group;
template <unsigned N, typename P = void>
struct thread_block_tile;
}  // namespace cooperative_groups
namespace nvcuda {
namespace wmma {}
}  // namespace nvcuda
namespace cub {}
