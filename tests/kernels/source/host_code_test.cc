#include "kernels/source/host_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Skipped(std::string_view text) { return WithoutHostCode(text, v1::COMPILER_NVRTC); }

// What is left, without blanks.
std::string Left(std::string_view text) {
  std::string left = Skipped(text);
  left.erase(std::remove_if(left.begin(), left.end(), [](char c) { return c == ' ' || c == '\n'; }), left.end());
  return left;
}

TEST(WithoutHostCode, KeepsKernelsAndTheirLinesAndBlanksHostFunctions) {
  const std::string source =
      "#include <vector>\n"
      "__global__ void k(float* x) { x[0] = 1; }\n"
      "void launch(float* x) {\n"
      "  k<<<1, 1>>>(x);\n"
      "}\n"
      "__device__ int after;\n";
  const std::string left = Skipped(source);
  EXPECT_EQ(left.size(), source.size());
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), std::count(source.begin(), source.end(), '\n'));
  EXPECT_EQ(Left(source), "__global__voidk(float*x){x[0]=1;}__device__intafter;");
}

TEST(WithoutHostCode, BlanksBindingsAndPrototypesOfAPyTorchExtension) {
  EXPECT_EQ(Left("at::Tensor forward(at::Tensor x);\n"
                 "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &forward); }\n"
                 "TORCH_LIBRARY(ops, m) { m.def(\"x\"); }\n"
                 "int kept_not = 3;\n"),
            "");
}

TEST(WithoutHostCode, KeepsTypesConstantsTemplatesAndConstexprFunctions) {
  const std::string kept =
      "constexpr int kThreads = 128;\nconst float kPi = 3.f;\nstruct Params { float* x; int n; };\n"
      "template <typename T> struct Vec { T v[4]; };\nconstexpr int half(int a) { return a / 2; }\n"
      "using real = float;\ntypedef int index;\nenum Mode { A, B };\n"
      "template <int N> __device__ float f(float x) { return x * N; }\n";
  EXPECT_EQ(Skipped(kept), kept);
}

TEST(WithoutHostCode, GoesIntoNamespacesAndExternC) {
  EXPECT_EQ(Left("namespace a { namespace {\nvoid host() {}\n__global__ void k() {}\n} }\n"
                 "extern \"C\" {\nvoid host2() {}\n__global__ void l() {}\n}\n"),
            "namespacea{namespace{__global__voidk(){}}}extern\"C\"{__global__voidl(){}}");
}

TEST(WithoutHostCode, KnowsMacrosThatStandForDevice) {
  EXPECT_THAT(
      Skipped("#define HD __host__ __device__ inline\nHD float f(float x) { return x; }\nfloat g() { return 1; }"),
      HasSubstr("HD float f(float x) { return x; }"));
  EXPECT_THAT(WithoutHostCode("FN float f() { return 1; }", v1::COMPILER_NVRTC, {"FN"}), HasSubstr("FN float f()"));
}

TEST(WithoutHostCode, LeavesDirectivesInBlankedFunctionsSoThatIfsStayBalanced) {
  const std::string left =
      Skipped("#ifdef A\nvoid host() {\n#endif\n  int x;\n#ifdef A\n}\n#endif\n__global__ void k() {}");
  EXPECT_THAT(left, HasSubstr("#ifdef A"));
  EXPECT_THAT(left, HasSubstr("#endif"));
}

TEST(WithoutHostCode, BlanksClassesOfTheHost) {
  EXPECT_EQ(Left("struct Runner { std::vector<int> sizes; void Run() {} };\nusing Strings = std::vector<std::string>;\n"
                 "using namespace std::chrono;"),
            "");
}

TEST(WithoutHostCode, BlanksFunctionsOfTypesThatLaunchKernels) {
  EXPECT_EQ(Left("template <int N> class Op {\n public:\n  struct Params { float* x; int n{1}; };\n"
                 "  explicit Op(int n) : n_(n), m_{n} { cudaMalloc(&x_, n); }\n"
                 "  void run(int n) const { k<N><<<n, 32>>>(x_); }\n"
                 "  __device__ void apply(float* x) const { x[0] = N; }\n  int size() const { return n_; }\n"
                 " private:\n  int n_, m_;\n  float* x_;\n};\n"),
            "template<intN>classOp{public:structParams{float*x;intn{1};};"
            "__device__voidapply(float*x)const{x[0]=N;}intsize()const{returnn_;}private:intn_,m_;float*x_;};");
}

TEST(WithoutHostCode, BlanksConstructorsOfTypesThatLaunchKernels) {
  EXPECT_EQ(Left("class Buffer {\n public:\n  explicit Buffer(int n) { cudaMalloc(&p_, n); }\n  float* p_;\n};\n"
                 "class Op {\n public:\n  struct Params { Params(int n) : n_(n) {} int n_; };\n"
                 "  Op(int n) : n_(n), buffer_(n) {}\n  void run() { k<<<n_, 32>>>(buffer_.p_); }\n"
                 " private:\n  int n_;\n  Buffer buffer_;\n};\n"),
            "classBuffer{public:float*p_;};"
            "classOp{public:structParams{Params(intn):n_(n){}intn_;};private:intn_;Bufferbuffer_;};");
}

TEST(WithoutHostCode, KeepsConstexprFunctionsOfTypesThatCallTheRuntime) {
  EXPECT_EQ(Left("struct Twice { int v; constexpr Twice(int a) : v(2 * a) {}\n"
                 "  static constexpr int bytes(int n) { return MallocSize(n); }\n"
                 "  __device__ void run() { cudaGridDependencySynchronize(); } };\n"),
            "structTwice{intv;constexprTwice(inta):v(2*a){}"
            "staticconstexprintbytes(intn){returnMallocSize(n);}"
            "__device__voidrun(){cudaGridDependencySynchronize();}};");
}

TEST(WithoutHostCode, BlanksMacroCallsThatNoDeviceMacroIs) {
  EXPECT_EQ(Left("REGISTER_OP(a, b)\nINSTANTIATE(float);\n__global__ void k() {}"), "__global__voidk(){}");
  EXPECT_THAT(Skipped("#define KERNEL(T) __global__ void k_##T(T* x) {}\nKERNEL(float)\n"),
              HasSubstr("\nKERNEL(float)"));
}

TEST(WithoutHostCode, KeepsHeadersThatABuildByNvrtcHas) {
  const std::string left = Skipped(
      "#include <cuda_fp16.h>\n#include <cub/cub.cuh>\n#include <cstdint>\n#include <iostream>\n#include "
      "<type_traits>\n#include "
      "<torch/extension.h>\n#include <cublas_v2.h>\n");
  EXPECT_THAT(left, HasSubstr("<cuda_fp16.h>"));
  EXPECT_THAT(left, HasSubstr("<cub/cub.cuh>"));
  EXPECT_THAT(left, HasSubstr("<cstdint>"));
  EXPECT_THAT(left, HasSubstr("<type_traits>"));
  EXPECT_THAT(left, HasSubstr("<torch/extension.h>"));
  EXPECT_THAT(left, Not(HasSubstr("iostream")));
  EXPECT_THAT(left, Not(HasSubstr("cublas")));
}

TEST(WithoutHostCode, LeavesStandardHeadersToNvcc) {
  const std::string left = WithoutHostCode("#include <algorithm>\n#include <torch/extension.h>\n", v1::COMPILER_NVCC);
  EXPECT_THAT(left, HasSubstr("<algorithm>"));
  EXPECT_THAT(left, Not(HasSubstr("torch")));
}

TEST(WithoutHostCode, TakesTypesInEachOtherWithoutEnd) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "struct a{";
  EXPECT_EQ(Skipped(deep).size(), deep.size());
}

TEST(WithoutHostCode, TakesAnythingWithoutACrash) {
  for (const char* text :
       {"", "}", "{{{{", "template <", "namespace", "extern \"C\"", "f(", "x(y) z(", "#", "\"", "R\"(", "/*",
        "template <typename T> __global__", "struct", ";;;;", "[[[", "namespace a::b {"}) {
    EXPECT_EQ(Skipped(text).size(), std::string_view(text).size()) << text;
  }
}

TEST(StandInHeaders, AreThoseThatTheTextsInclude) {
  const std::map<std::string, std::string> headers = StandInHeaders({"#include <cmath>\n", "#include <ATen/ATen.h>\n"});
  EXPECT_TRUE(headers.contains("ATen/ATen.h"));
  EXPECT_TRUE(headers.contains("pawl_torch_types.h"));
  EXPECT_FALSE(headers.contains("cmath")) << "the build has it";
  EXPECT_TRUE(StandInHeaders({"int x;"}).empty());
}

}  // namespace
}  // namespace pawl
