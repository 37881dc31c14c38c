// What drafts take from host code in the styles of classes, configurations with names, queries of the GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/cli/draft/drafted_toml.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using DraftHostsTest = DraftedTomlTest;

constexpr char kTwo[] =
    "__global__ void square(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i] * x[i];\n}\n"
    "__global__ void halve(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i] / 2;\n}\n";

TEST_F(DraftHostsTest, FunctionsOfAClassLaunchKernels) {
  const auto layer = [](const std::string& inside, const std::string& outside) {
    return absl::StrCat(kTwo,
                        "namespace net {\nclass Layer {\n public:\n  explicit Layer(int n) : n_{n} {\n"
                        "    cudaMalloc(&middle_, n * sizeof(float));\n  }\n",
                        inside, " private:\n  int n_;\n  float* middle_;\n};\n", outside, "}\n");
  };
  const std::string launches =
      "(const float* x, float* y) {\n    square<<<(n_ + 127) / 128, 128>>>(x, middle_, this->n_);\n"
      "    halve<<<(n_ + 127) / 128, 128>>>(middle_, y, n_);\n  }\n";
  for (const std::string& source :
       {layer("  void forward" + launches, ""),
        layer("  void forward(const float* x, float* y);\n", "void Layer::forward" + launches)}) {
    EXPECT_THAT(TomlOf(source), HasSubstr("or a host function that launches them: forward (square, halve)"));
    for (const char* entry : {"forward", "net::Layer::forward"}) {
      EXPECT_THAT(TomlOf(source, entry),
                  AllOf(HasSubstr("arguments = [\"x\", \"middle\", \"n\"]"),
                        HasSubstr("arguments = [\"middle\", \"y\", \"n\"]"),
                        HasSubstr("name = \"middle\"\ntype = \"f32\"\nshape = [\"n\"]\nrole = \"scratch\"")));
    }
  }
}

TEST_F(DraftHostsTest, AMemberMayHaveTheNameOfItsKernel) {
  EXPECT_THAT(TomlOf("template <typename T> __global__ void k(const T* x, T* y, int n);\n"
                     "struct Op {\n  int n;\n  void k(const float* x, float* y) { ::k<float><<<(n + 255) / 256, "
                     "256>>>(x, y, n); }\n};\n"
                     "template <typename T> __global__ void k(const T* x, T* y, int n) {\n"
                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n"),
              AllOf(HasSubstr("geometry from line 4 of k"), HasSubstr("entry = \"k<float>\"")));
}

TEST_F(DraftHostsTest, FunctionsOfOneNameAreNamedInFull) {
  const std::string source = absl::StrCat(
      kTwo,
      "struct A {\n  void run(const float* x, float* y, int n) { square<<<(n + 127) / 128, 128>>>(x, y, n); }\n};\n"
      "struct B {\n  void run(const float* x, float* y, int n) { halve<<<(n + 127) / 128, 128>>>(x, y, n); }\n};\n");
  EXPECT_THAT(TomlOf(source), HasSubstr("launches them: A::run (square); B::run (halve)"));
  EXPECT_THAT(TomlOf(source, "run"),
              HasSubstr("has several functions run that launch: A::run, B::run; name one of them in full"));
  EXPECT_THAT(TomlOf(source, "A::run"), HasSubstr("::square\"\ngrid"));
  EXPECT_THAT(TomlOf(source, "B::run"), HasSubstr("::halve\"\ngrid"));
}

TEST_F(DraftHostsTest, ConfigurationsAndStructsMayBeListsWithNames) {
  const std::string kernel =
      "struct Params {\n  const float* in;\n  float* out;\n  int rows, cols;\n  float scale;\n};\n"
      "__global__ void k(Params p) {\n  auto cluster = cooperative_groups::this_cluster();\n  int row = blockIdx.x / "
      "4;\n"
      "  for (int c = threadIdx.x; c < p.cols; c += blockDim.x) p.out[row * p.cols + c] = p.in[row * p.cols + c];\n"
      "  cluster.sync();\n}\n"
      "void run(const float* in, float* out, int rows, int cols) {\n"
      "  Params p{.in = in, .out = out, .rows = rows, .cols = cols, .scale = 0.5f};\n";
  const auto all =
      AllOf(HasSubstr("grid = [\"rows * 4\"]"), HasSubstr("cluster = [\"4\"]"), HasSubstr("shared = \"1024\""),
            HasSubstr("shape = [\"rows\", \"cols\"]"), HasSubstr("value = \"0.5\""), HasSubstr("geometry from line"));
  EXPECT_THAT(
      TomlOf(kernel +
             "  cudaLaunchAttribute attributes[] = {{.id = cudaLaunchAttributeClusterDimension,\n"
             "                                       .val = {.clusterDim = {4, 1, 1}}}};\n"
             "  cudaLaunchConfig_t config{.gridDim = dim3(rows * 4), .blockDim = dim3(256), .dynamicSmemBytes = 1024,\n"
             "                            .stream = 0, .attrs = attributes, .numAttrs = 1,};\n"
             "  cudaLaunchKernelEx(&config, k, p);\n}\n"),
      all);
  EXPECT_THAT(TomlOf(kernel + "  cudaLaunchAttribute of[1];\n  of[0].val.clusterDim = {.x = 4, .y = 1, .z = 1};\n"
                              "  cudaLaunchConfig_t config = {rows * 4, dim3(256), 1024, 0, of, 1};\n"
                              "  cudaLaunchKernelEx(&config, k, p);\n}\n"),
              all);
}

TEST_F(DraftHostsTest, ALaunchThatIsNotUnderstoodIsTold) {
  EXPECT_THAT(TomlOf("__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }\n"
                     "void run(Launcher& launcher, float* x, int n) {\n  launcher.Launch(k, x, n);\n}\n"),
              AllOf(HasSubstr("# TODO: line 3 may launch this kernel, in a way that is not understood"),
                    Not(HasSubstr("has no launch"))));
  EXPECT_THAT(TomlOf("__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }\n"
                     "static auto launched = [](float* x, int n) { k<<<1, 64>>>(x, n); };\n"),
              HasSubstr("# TODO: the launch in line 2 is not understood"));
}

TEST_F(DraftHostsTest, WhatACallFillsIsNotItsFirstValue) {
  const std::string kernel =
      "__global__ void k(float* x, int n) {\n  cooperative_groups::grid_group grid = cooperative_groups::this_grid();\n"
      "  for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] = 1;\n  grid.sync();\n}\n"
      "void run(float* x, int n) {\n  int sms = 0, each = 0;\n"
      "  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);\n";
  const std::string launch = ", 256, arguments, 0, 0);\n}\n",
                    arguments = "  void* arguments[] = {&x, &n};\n  cudaLaunchCooperativeKernel((void*)k, ";
  EXPECT_THAT(TomlOf(absl::StrCat(kernel, arguments, "2 * sms", launch)), HasSubstr("grid = [\"2 * SM_COUNT\"]"));
  EXPECT_THAT(TomlOf(absl::StrCat(kernel, "  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, k, 256, 0));\n",
                                  arguments, "dim3(sms * each)", launch)),
              AllOf(HasSubstr("grid = [\"SM_COUNT\"]"), HasSubstr("# TODO: grid: `sms * each`")));
  EXPECT_THAT(TomlOf("__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }\n"
                     "void run(float* x, int argc, char** argv) {\n  int n = 4096;\n  parse(argc, argv, &n);\n"
                     "  k<<<1, 64>>>(x, n);\n}\n"),
              HasSubstr("n = 4096"));
}

TEST_F(DraftHostsTest, AGridOfANumberOfBlocksIsNotVariedWithTheBlock) {
  EXPECT_THAT(TomlOf("__global__ void k(float* x) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                     "  if (i < 3 * 256) x[i] = 1;\n}\n"
                     "void run(float* x) {\n  dim3 block(128);\n  dim3 grid((3 * 256 + block.x - 1) / block.x);\n"
                     "  k<<<grid, block>>>(x);\n}\n"),
              AllOf(HasSubstr("grid = [\"6\"]"), HasSubstr("block = [\"128\"]"), Not(HasSubstr("name = \"BLOCK\""))));
}

TEST_F(DraftHostsTest, ANumberThatFollowsTheLaunchIsNoSize) {
  EXPECT_THAT(
      TomlOf("__global__ void partial(const float* x, float* part, int n) {\n  float s = 0;\n"
             "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * gridDim.y) s += x[i];\n"
             "  part[blockIdx.y * gridDim.x + blockIdx.x] = s;\n}\n"
             "__global__ void total(const float* part, float* out, int count) {\n  float s = 0;\n"
             "  for (int i = 0; i < count; ++i) s += part[i];\n  out[0] = s;\n}\n"
             "void run(const float* x, float* out, int n) {\n  dim3 grid(16, 8);\n"
             "  int blocks = grid.x * grid.y;\n  float* part;\n  cudaMalloc(&part, blocks * sizeof(float));\n"
             "  partial<<<grid, 32>>>(x, part, n);\n  total<<<1, 1>>>(part, out, blocks);\n}\n",
             "run"),
      AllOf(HasSubstr("name = \"count\"\ntype = \"i32\"\nvalue = \"128\""), HasSubstr("shape = [\"8\", \"16\"]")));
}

TEST_F(DraftHostsTest, RowsOfTheGridAreExtents) {
  EXPECT_THAT(
      TomlOf("__global__ void k(float* out, int pages) {\n"
             "  const int seq = blockIdx.y, head = blockIdx.x, heads = gridDim.x;\n"
             "  for (int i = threadIdx.x; i < 64; i += 32) out[(seq * heads + head) * 64 + i] = pages;\n}\n"
             "void run(float* out, int heads, int seqs, int pages) { k<<<dim3(heads, seqs), 32>>>(out, pages); }\n"),
      HasSubstr("shape = [\"seqs\", \"heads\", \"64\"]"));
}

TEST_F(DraftHostsTest, RowOffsetsReachTheirLastValue) {
  EXPECT_THAT(TomlOf("__global__ void k(const int* offsets, const float* x, float* y, int rows) {\n"
                     "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row >= rows) return;\n  float s = 0;\n"
                     "  for (int i = offsets[row]; i < offsets[row + 1]; ++i) s += x[i];\n  y[row] = s;\n}\n"),
              AllOf(HasSubstr("fill = { csr_offsets = \"OFFSETS_END\" }"), Not(HasSubstr("OFFSETS_END - 1"))));
}

TEST_F(DraftHostsTest, AnOutputOfAFinerOrCoarserTypeHasItsOwnTolerance) {
  EXPECT_THAT(
      TomlOf("#include <cuda_fp8.h>\n__global__ void k(const float* x, __nv_fp8_e4m3* q, float* scale, int n) {\n"
             "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
             "  if (i < n) { q[i] = __nv_fp8_e4m3(x[i]); scale[i] = x[i]; }\n}\n"),
      AllOf(HasSubstr("name = \"q\"\ntype = \"f8e4m3\"\nshape = [\"n\"]\nrole = \"output\"\n"
                      "tolerance = { absolute = 0.5, relative = 0.05 }"),
            HasSubstr("[tolerance]\nabsolute = 0.001\nrelative = 0.0001")));
}

TEST_F(DraftHostsTest, WhatNoLaunchCanPassSaysWhatToChange) {
  EXPECT_THAT(TomlOf("__global__ void k(const __grid_constant__ CUtensorMap map, float* y) { y[0] = 1; }\n"),
              AllOf(HasSubstr("takes map as const CUtensorMap"), HasSubstr("let it take the pointer and the extents")));
  EXPECT_THAT(TomlOf("template <class F, class... A> __global__ void k(int n, F f, A... a) { f(n, a...); }\n"),
              HasSubstr("k takes f as F, a function object"));
  EXPECT_THAT(TomlOf("template <class... A> __global__ void k(int n, A... a) { g(n, a...); }\n"),
              AllOf(HasSubstr("takes a pack of arguments"), HasSubstr("names each of its parameters")));
  EXPECT_THAT(TomlOf(".version 8.4\n.visible .entry k(.param .u64 p) { ret; }\n", "", "k.ptx"),
              AllOf(HasSubstr("k.ptx is no CUDA C++"), HasSubstr("source = \"k.ptx\"")));
}

TEST_F(DraftHostsTest, AFunctionCallOperatorOfAClassTemplateLaunchesKernels) {
  EXPECT_THAT(TomlOf("template <typename T> class Op {\n public:\n  void operator()(const T* x, T* y);\n"
                     " private:\n  int n_;\n};\n"
                     "template <typename T> __global__ void k(const T* x, T* y, int n) {\n"
                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n"
                     "template <typename T> void Op<T>::operator()(const T* x, T* y) {\n"
                     "  k<T><<<(n_ + 255) / 256, 256>>>(x, y, n_);\n}\ntemplate class Op<float>;\n"),
              AllOf(HasSubstr("geometry from line 12 of operator()"), HasSubstr("grid = [\"ceil_div(n, BLOCK)\"]")));
}

TEST_F(DraftHostsTest, ALaunchInALoopThatEndsByDataIsTold) {
  const std::string kernel =
      "__global__ void k(const int* f, int* next, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) next[i] = f[i];\n}\nvoid run(int* f, int* next, int* size) {\n  int n = 64;\n";
  const std::string body =
      "{\n    k<<<(n + 255) / 256, 256>>>(f, next, n);\n    cudaMemcpy(&n, size, 4, cudaMemcpyDeviceToHost);\n  }";
  EXPECT_THAT(TomlOf(absl::StrCat(kernel, "  while (n > 0) ", body, "\n}\n")),
              HasSubstr("# TODO: it is launched in a loop that `repeat` can't say: while(n>0)"));
  EXPECT_THAT(TomlOf(absl::StrCat(kernel, "  do ", body, " while (n > 0);\n}\n")),
              HasSubstr("# TODO: it is launched in a loop that `repeat` can't say: do ... while(n>0)"));
  EXPECT_THAT(TomlOf(absl::StrCat(kernel, "  do ", body, " while (0);\n}\n")), Not(HasSubstr("in a loop")));
}

TEST_F(DraftHostsTest, AVectorOfThrustHasItsExtent) {
  EXPECT_THAT(TomlOf("#include <thrust/device_vector.h>\n"
                     "__global__ void k(const double* src, const int* idx, double* dst, int n, int m) {\n"
                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) dst[i] = src[idx[i]];\n}\n"
                     "int main() {\n  int n = 4096, m = 1024;\n  thrust::device_vector<double> src(m, 1.0), dst(n);\n"
                     "  thrust::device_vector<int> idx(n);\n"
                     "  k<<<n / 256, 256>>>(thrust::raw_pointer_cast(src.data()), idx.data().get(), dst.data().get(), "
                     "n, m);\n}\n"),
              HasSubstr("name = \"src\"\ntype = \"f64\"\nshape = [\"m\"]"));
}

TEST_F(DraftHostsTest, ADispatchOverIntegersChoosesOne) {
  EXPECT_THAT(
      TomlOf("#include <torch/extension.h>\n"
             "template <typename scalar_t> __global__ void k(const scalar_t* x, int* y, int n) {\n"
             "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n"
             "void run(torch::Tensor x, torch::Tensor y, int n) {\n"
             "  AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), \"k\", [&] {\n"
             "    k<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<int>(), n);\n  });\n}\n"),
      AllOf(HasSubstr("entry = \"k<int>\""), HasSubstr("k<scalar_t>: int was chosen")));
}

TEST_F(DraftHostsTest, OfManyKernelsTheFirstAreListed) {
  std::string source;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&source, "__global__ void k", i, "(float* x) { x[0] = ", i, "; }\n");
  EXPECT_THAT(TomlOf(source), AllOf(HasSubstr("has 300 kernels: k0 ("), HasSubstr("k19 (k.cu:20), 280 more. Choose")));
}

}  // namespace
}  // namespace pawl
