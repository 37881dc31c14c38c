// Bundles drafted from sources, against golden drafts. PAWL_WRITE_DOCS=1 writes them again.
#include "cli/draft/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/draft/draft_process.h"
#include "cli/draft/read/libclang.h"
#include "kernels/problem.h"
#include "kernels/read/bundle_reader.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

fs::path Golden(const std::string& file) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/cli/draft/golden" / file;
}

std::string ReadText(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

class DraftTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const absl::StatusOr<clang::Functions> loaded = clang::Load(); !loaded.ok()) GTEST_SKIP() << loaded.status();
  }

  absl::StatusOr<DraftedBundle> DraftOf(const std::string& text, const std::string& entry = "",
                                        const std::string& name = "k.cu") {
    std::ofstream(folder_.path() / name) << text;
    return DraftBundle({.source = folder_.path() / name, .entry = entry, .reference = ""});
  }
  std::string TomlOf(const std::string& text, const std::string& entry = "") {
    absl::StatusOr<DraftedBundle> drafted = DraftOf(text, entry);
    return drafted.ok() ? drafted->files["kernel.toml"] : std::string(drafted.status().message());
  }
  std::string ErrorOf(const std::string& text, const std::string& entry = "") {
    const absl::StatusOr<DraftedBundle> drafted = DraftOf(text, entry);
    return drafted.ok() ? "drafted" : std::string(drafted.status().message());
  }

  TemporaryFolder folder_{"pawl-draft-"};
};

struct GoldenDraft {
  std::string source, entry, golden;
};

class GoldenDraftTest : public DraftTest, public testing::WithParamInterface<GoldenDraft> {};

TEST_P(GoldenDraftTest, IsAsBefore) {
  const absl::StatusOr<DraftedBundle> drafted =
      DraftBundle({.source = Golden(GetParam().source), .entry = GetParam().entry, .reference = ""});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  const fs::path golden = Golden(GetParam().golden);
  if (std::getenv("PAWL_WRITE_DOCS") != nullptr) std::ofstream(golden) << drafted->files.at("kernel.toml");
  EXPECT_EQ(drafted->files.at("kernel.toml"), ReadText(golden));
}

// What is left to do is marked: the reader has nothing against the rest.
TEST_P(GoldenDraftTest, IsABundleThatTheReaderTakes) {
  const absl::StatusOr<DraftedBundle> drafted =
      DraftBundle({.source = Golden(GetParam().source), .entry = GetParam().entry, .reference = ""});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  for (const auto& [path, text] : drafted->files) std::ofstream(folder_.path() / path) << text;
  const BundleReading reading = ReadBundle(folder_.path());
  EXPECT_THAT(reading.problems, IsEmpty()) << FormatProblem(reading.problems[0]);
  EXPECT_EQ(drafted->files.at(GetParam().source), ReadText(Golden(GetParam().source))) << "the source stays as it is";
}

INSTANTIATE_TEST_SUITE_P(
    Sources, GoldenDraftTest,
    testing::Values(GoldenDraft{"embedding.cu", "", "embedding.toml"}, GoldenDraft{"adam.cu", "", "adam.toml"},
                    GoldenDraft{"stencil.cu", "product", "product.toml"},
                    GoldenDraft{"stencil.cu", "sweep", "sweep.toml"}, GoldenDraft{"reduce.cu", "", "reduce.toml"},
                    GoldenDraft{"scale.cu", "", "scale.toml"}, GoldenDraft{"two_steps.cu", "total", "two_steps.toml"}),
    [](const auto& info) { return info.param.golden.substr(0, info.param.golden.find('.')); });

// Sources in the styles that people use. Each says in comments what is asked for, `// entry: NAME`, and what its draft
// must have, `// draft: TEXT`; of one that is `// incomplete` a person must write a part before the reader takes it.
class StyleTest : public DraftTest, public testing::WithParamInterface<std::string> {};

TEST_P(StyleTest, IsDraftedAsTheSourceSays) {
  const fs::path source = Golden("styles") / (GetParam() + ".cu");
  std::string entry;
  std::vector<std::string> expected;
  for (const absl::string_view line : absl::StrSplit(ReadText(source), '\n')) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "// entry: ")) entry = std::string(rest);
    if (absl::ConsumePrefix(&rest, "// draft: ")) expected.emplace_back(rest);
  }
  ASSERT_THAT(expected, Not(IsEmpty()));
  const absl::StatusOr<DraftedBundle> drafted = DraftBundle({.source = source, .entry = entry, .reference = ""});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  const std::string& toml = drafted->files.at("kernel.toml");
  for (const std::string& text : expected) EXPECT_THAT(toml, HasSubstr(text)) << toml;
  if (absl::StrContains(ReadText(source), "// incomplete")) return;
  for (const auto& [path, text] : drafted->files) std::ofstream(folder_.path() / path) << text;
  for (const Problem& problem : ReadBundle(folder_.path()).problems) ADD_FAILURE() << FormatProblem(problem);
}

INSTANTIATE_TEST_SUITE_P(Sources, StyleTest,
                         testing::Values("bf16_norm", "cluster_histogram", "cuda_sample", "cutlass_like",
                                         "header_split", "kernel_pointer", "launch_kernel", "offsets_in_one_buffer",
                                         "ping_pong", "quantised", "thrust_host", "torch_extension",
                                         "two_step_reduction"),
                         [](const auto& info) { return info.param; });

TEST_F(DraftTest, ConstPointersAreInputsAndWrittenOnesOutputs) {
  const std::string toml = TomlOf(
      "extern \"C\" __global__ void k(const float* a, double* b, unsigned char* c, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) { b[i] = a[i]; c[i] += 1; }\n}\n");
  EXPECT_THAT(toml, HasSubstr("name = \"a\"\ntype = \"f32\"\nshape = [\"n\"]\nfill = \"normal\"\n"));
  EXPECT_THAT(toml, HasSubstr("name = \"b\"\ntype = \"f64\"\nshape = [\"n\"]\nrole = \"output\"\n"));
  EXPECT_THAT(toml, HasSubstr("name = \"c\"\ntype = \"u8\"\nshape = [\"n\"]\nrole = \"inout\"\n"));
}

TEST_F(DraftTest, FollowsPointersThroughVariablesCastsAndDeviceFunctions) {
  const std::string toml = TomlOf(
      "__device__ void put(float* to, float v) { *to = v; }\n"
      "extern \"C\" __global__ void k(const float* x, float* y, float* z, int rows, int cols) {\n"
      "  const int row = blockIdx.x;\n"
      "  if (row >= rows) return;\n"
      "  float4* out = reinterpret_cast<float4*>(y) + row * cols / 4;\n"
      "  for (int c = threadIdx.x; c < cols; c += blockDim.x) put(z + row * cols + c, x[row * cols + c]);\n"
      "  out[0].x = 1;\n}\n");
  EXPECT_THAT(toml, HasSubstr("name = \"y\"\ntype = \"f32\""));
  EXPECT_THAT(toml, HasSubstr("name = \"z\"\ntype = \"f32\"\nshape = [\"rows\", \"cols\"]\nrole = \"output\"\n"));
}

TEST_F(DraftTest, WritesVariablesIntoTheSourceOnlyWhereTheirTextStandsOnce) {
  const std::string toml = TomlOf(
      "constexpr int BLOCK = 128;\n"
      "__global__ void k(float* x, int n) {\n  __shared__ float s[BLOCK];\n  int i = blockIdx.x * BLOCK + "
      "threadIdx.x;\n"
      "  if (i < n) x[i] = s[threadIdx.x];\n}\n"
      "void go(float* x, int n) { k<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(x, n); }\n");
  EXPECT_THAT(toml, HasSubstr("name = \"BLOCK\"\nvalues = [64, 128, 256, 512, 1024]\nstart = 128\nreplaces = "
                              "\"constexpr int BLOCK = {};\"\n"));
  EXPECT_THAT(toml, HasSubstr("grid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\n"));
}

TEST_F(DraftTest, DoesNotVaryWhatTheLaunchMayDependOn) {
  const std::string toml = TomlOf(
      "constexpr int TILE = 32;\n"
      "__global__ void k(float* x, int n) {\n  __shared__ float s[TILE];\n  int i = blockIdx.x * TILE + threadIdx.x;\n"
      "  if (i < n) x[i] = s[threadIdx.x];\n}\n"
      "void go(float* x, int n) { k<<<(n + 31) / 32, 32>>>(x, n); }\n");
  EXPECT_THAT(toml, Not(HasSubstr("name = \"TILE\"")));
  EXPECT_THAT(toml,
              HasSubstr("#   TILE = 32 in line 1: the launch does not use this name, and may depend on its value\n"));
}

TEST_F(DraftTest, OffersRegistersAndFastMathForEveryKernel) {
  const std::string toml = TomlOf("extern \"C\" __global__ void k(float* x) { x[0] = 1; }");
  EXPECT_THAT(toml, AllOf(HasSubstr("option = \"-maxrregcount={}\""), HasSubstr("option = \"--use_fast_math\"")));
}

TEST_F(DraftTest, TakesHipsLaunches) {
  EXPECT_THAT(
      TomlOf("#include <hip/hip_runtime.h>\n"
             "template <typename T, int ITEMS_PER_THREAD> __global__ void k(T* x, int n) { int i = blockIdx.x * "
             "blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n"
             "void go(float* x, int n) { hipLaunchKernelGGL((k<float, 4>), dim3((n + 255) / 256), dim3(256), "
             "0, 0, x, n); }\n"),
      AllOf(HasSubstr("entry = \"k<float, TUNE_ITEMS_PER_THREAD>\""), HasSubstr("grid = [\"ceil_div(n, BLOCK)\"]")));
}

TEST_F(DraftTest, ReadsAReferenceInPython) {
  std::ofstream(folder_.path() / "k.cu") << "extern \"C\" __global__ void k(const float* x, float* y, int n) { int i = "
                                            "threadIdx.x; if (i < n) y[i] = x[i]; }";
  std::ofstream(folder_.path() / "ref.py") << "import torch\n\ndef copy(x):\n    return x.clone()\n";
  absl::StatusOr<DraftedBundle> drafted =
      DraftBundle({.source = folder_.path() / "k.cu", .entry = "", .reference = folder_.path() / "ref.py"});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  EXPECT_THAT(drafted->files["problem.py"],
              AllOf(HasSubstr("def copy(x):\n    return x.clone()"), HasSubstr("def inputs(sizes, seed):"),
                    HasSubstr("def reference(x, **rest):"), HasSubstr("return {\"y\": copy(x)}")));
}

TEST_F(DraftTest, NamesNoParameterOfPythonLikeAKeyword) {
  std::ofstream(folder_.path() / "k.cu")
      << "extern \"C\" __global__ void k(const float* in, const float* w, float* out, int n) { int i = threadIdx.x; "
         "if (i < n) out[i] = in[i] * w[i]; }";
  absl::StatusOr<DraftedBundle> drafted =
      DraftBundle({.source = folder_.path() / "k.cu", .entry = "", .reference = ""});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  EXPECT_THAT(drafted->files["problem.py"],
              AllOf(HasSubstr("def reference(w, **rest):"), HasSubstr("    in_ = rest[\"in\"]\n"),
                    HasSubstr("# def baseline(w, **rest):")));
}

TEST_F(DraftTest, TakesHeadersAboveTheSourcesFolder) {
  std::filesystem::create_directories(folder_.path() / "lib" / "kernels");
  std::ofstream(folder_.path() / "lib" / "common.h") << "constexpr float kScale = 2;\n";
  std::ofstream(folder_.path() / "lib" / "kernels" / "k.cu")
      << "#include \"../common.h\"\nextern \"C\" __global__ void k(float* x) { x[0] = kScale; }\n";
  absl::StatusOr<DraftedBundle> drafted =
      DraftBundle({.source = folder_.path() / "lib" / "kernels" / "k.cu", .entry = "", .reference = ""});
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  EXPECT_TRUE(drafted->files.contains("kernels/k.cu"));
  EXPECT_TRUE(drafted->files.contains("common.h"));
  EXPECT_THAT(drafted->files["kernel.toml"],
              AllOf(HasSubstr("source = \"kernels/k.cu\""), HasSubstr("files = [\"common.h\"]")));
}

// Bad input: one clear error, no crash.

TEST_F(DraftTest, AnEmptyFileIsAnError) { EXPECT_THAT(ErrorOf("  \n\n"), HasSubstr("k.cu is empty")); }

TEST_F(DraftTest, ABinaryFileIsAnError) {
  EXPECT_THAT(ErrorOf(std::string("\x7f"
                                  "ELF\0\0",
                                  6)),
              HasSubstr("is a binary file; expected CUDA C++ source"));
}

TEST_F(DraftTest, AFileThatIsTooLargeIsAnError) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&text, "int a", i, ";  // filler\n");
  EXPECT_THAT(ErrorOf(text), HasSubstr("larger than 1 MB"));
}

TEST_F(DraftTest, ManyShortLinesAreRead) {
  std::string text(100'000, '\n');
  text += "extern \"C\" __global__ void k(float* x) { x[0] = 1; }\n";
  EXPECT_THAT(TomlOf(text), HasSubstr("entry = \"k\""));
}

TEST_F(DraftTest, ASourceWithoutAKernelIsAnError) {
  EXPECT_THAT(ErrorOf("int f() { return 1; }"), HasSubstr("has no __global__ function with a body"));
}

TEST_F(DraftTest, SyntaxErrorsAreNamedWhereNoKernelIsLeft) {
  EXPECT_THAT(ErrorOf("__global__ void k(float* x { x[0] = 1; }\n"),
              AllOf(HasSubstr("has no __global__ function"), HasSubstr("k.cu:1:")));
}

TEST_F(DraftTest, SeveralKernelsAreListed) {
  EXPECT_THAT(
      ErrorOf("__global__ void a(int* x) { x[0] = 1; }\nnamespace n { __global__ void b(int* x) { x[0] = 1; } }\n"),
      AllOf(HasSubstr("has 2 kernels: a (k.cu:1), n::b (k.cu:2)"), HasSubstr("--entry a,b")));
}

constexpr char kTwoKernels[] =
    "__global__ void fill(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n"
    "__global__ void twice(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i];\n}\n"
    "__global__ void other(float* z) { z[0] = 1; }\n"
    "void run(float* x, float* y, int n) {\n  fill<<<(n + 127) / 128, 128>>>(x, n);\n"
    "  twice<<<(n + 127) / 128, 128>>>(x, y, n);\n}\n"
    "void alone(float* z) { other<<<1, 1>>>(z); }\n";

TEST_F(DraftTest, HostFunctionsThatLaunchKernelsAreListed) {
  EXPECT_THAT(ErrorOf(kTwoKernels), HasSubstr("a host function that launches them: run (fill, twice); alone (other)"));
}

TEST_F(DraftTest, SeveralKernelsAreDraftedInTheOrderGiven) {
  const std::string toml = TomlOf(kTwoKernels, "fill, twice");
  const size_t fill = toml.find("entry = \"::fill\""), twice = toml.find("entry = \"::twice\"");
  ASSERT_NE(fill, std::string::npos) << toml;
  ASSERT_NE(twice, std::string::npos) << toml;
  EXPECT_LT(fill, twice);
  EXPECT_THAT(toml, Not(HasSubstr("other")));
  EXPECT_GT(TomlOf(kTwoKernels, "twice,fill").find("entry = \"::fill\""),
            TomlOf(kTwoKernels, "twice,fill").find("entry = \"::twice\""));
  EXPECT_THAT(ErrorOf(kTwoKernels, "fill,twise"), HasSubstr("did you mean twice?"));
}

// Each case was a draft that its own reader refused.
class ConsistentDraftTest : public DraftTest {
 protected:
  // The draft, which must be one that the reader takes.
  std::string Taken(const std::string& text, const std::string& entry = "") {
    const absl::StatusOr<DraftedBundle> drafted = DraftOf(text, entry);
    if (!drafted.ok()) return std::string(drafted.status().message());
    TemporaryFolder bundle("pawl-draft-");
    for (const auto& [path, content] : drafted->files) std::ofstream(bundle.path() / path) << content;
    for (const Problem& problem : ReadBundle(bundle.path()).problems) ADD_FAILURE() << FormatProblem(problem);
    return drafted->files.at("kernel.toml");
  }
};

TEST_F(ConsistentDraftTest, AGuessedBlockDoesNotBreakItsOwnConstraint) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  int j = blockIdx.y * blockDim.y + threadIdx.y;\n  x[i * n + j] = 1;\n}\n"
                    "void run(float* x, int n, int block_size) {\n  dim3 block(block_size, block_size);\n"
                    "  k<<<dim3(n / block_size, n / block_size), block>>>(x, n);\n}\n"),
              AllOf(HasSubstr("that = \"BLOCK_SIZE * BLOCK_SIZE <= 1024\""), HasSubstr("start = 32")));
}

TEST_F(ConsistentDraftTest, SizesGiveEveryGridABlock) {
  EXPECT_THAT(Taken("#define BLOCK_SIZE 256\n__global__ void k(float* x, int size, int stride) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < size) x[i] = stride;\n}\n"
                    "int main() {\n  const int size = 512;\n  float* x;\n  cudaMalloc(&x, size * sizeof(float));\n"
                    "  k<<<size / BLOCK_SIZE, BLOCK_SIZE>>>(x, size, 4);\n}\n"),
              HasSubstr("name = \"tiny\"\nsize = 256\n"));
}

TEST_F(ConsistentDraftTest, TheGeometryFollowsTheTemplateArgumentsThatItIsMadeOf) {
  const std::string scale = Taken(
      "template <int BLOCK, int VEC>\n__global__ void k(const float* x, float* y, int n) {\n"
      "  int i = (blockIdx.x * BLOCK + threadIdx.x) * VEC;\n"
      "  for (int v = 0; v < VEC; ++v) if (i + v < n) y[i + v] = x[i + v];\n}\n"
      "void run(const float* x, float* y, int n) { k<256, 4><<<(n + 1023) / 1024, 256>>>(x, y, n); }\n");
  EXPECT_THAT(scale, AllOf(HasSubstr("entry = \"k<TUNE_BLOCK, TUNE_VEC>\""),
                           HasSubstr("grid = [\"ceil_div(n, TUNE_BLOCK * TUNE_VEC)\"]"),
                           HasSubstr("block = [\"TUNE_BLOCK\"]")));
  const std::string tile = Taken(
      "template <int TILE>\n__global__ void k(const float* x, float* y, int w, int h) {\n"
      "  int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * TILE + threadIdx.y;\n"
      "  if (i < w && j < h) y[j * w + i] = x[j * w + i];\n}\n"
      "void run(const float* x, float* y, int w, int h) {\n"
      "  dim3 grid((w + 15) / 16, (h + 15) / 16), block(16, 16);\n  k<16><<<grid, block>>>(x, y, w, h);\n}\n");
  EXPECT_THAT(tile, AllOf(HasSubstr("grid = [\"ceil_div(w, TUNE_TILE)\", \"ceil_div(h, TUNE_TILE)\"]"),
                          HasSubstr("block = [\"TUNE_TILE\", \"TUNE_TILE\"]"),
                          HasSubstr("that = \"TUNE_TILE * TUNE_TILE <= 1024\""),
                          HasSubstr("geometry: 16 is taken for the template argument TUNE_TILE")));
}

TEST_F(ConsistentDraftTest, ATemplateArgumentThatTheGeometryMayHideIsNotVaried) {
  const std::string toml = Taken(
      "template <int BM, int BN, int WARPS>\n__global__ void k(float* x, int m, int n) {\n"
      "  int i = blockIdx.y * BM, j = blockIdx.x * BN;\n"
      "  for (int e = threadIdx.x; e < BM * BN; e += WARPS * 32) x[(i + e / BN) * n + j + e % BN] = 1;\n}\n"
      "void run(float* x, int m, int n) { k<64, 64, 8><<<dim3(n / 64, m / 64), 256>>>(x, m, n); }\n");
  EXPECT_THAT(toml,
              AllOf(HasSubstr("entry = \"k<64, 64, TUNE_WARPS>\""), HasSubstr("block = [\"TUNE_WARPS * 32\"]"),
                    HasSubstr("#   TUNE_BM = 64, a template argument: the grid and block have numbers that may")));
}

TEST_F(ConsistentDraftTest, ABlockAndATemplateArgumentOfOneNumberAreOneVariable) {
  const std::string toml = Taken(
      "template <unsigned blockSize> __global__ void k(const float* x, float* y, unsigned n) {\n"
      "  extern __shared__ float s[];\n  unsigned i = blockIdx.x * blockSize + threadIdx.x;\n"
      "  s[threadIdx.x] = i < n ? x[i] : 0;\n  __syncthreads();\n  if (threadIdx.x == 0) y[blockIdx.x] = s[0];\n}\n"
      "void run(const float* x, float* y, unsigned n) {\n  const int threads = 256, blocks = 128;\n"
      "  k<256><<<blocks, threads, threads * sizeof(float)>>>(x, y, n);\n}\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("entry = \"k<THREADS>\""), HasSubstr("block = [\"THREADS\"]"),
                          Not(HasSubstr("TUNE_blockSize"))));
}

TEST_F(ConsistentDraftTest, AGridOfSeveralItemsAThreadFollowsItsBlock) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int n) {\n  int i = blockIdx.x * blockDim.x * 4 + threadIdx.x;\n"
                    "  for (int v = 0; v < 4; ++v, i += blockDim.x) if (i < n) x[i] = 1;\n}\n"
                    "void run(float* x, int n) { k<<<(n + 1023) / 1024, 256>>>(x, n); }\n"),
              AllOf(HasSubstr("grid = [\"ceil_div(n, BLOCK * 4)\"]"),
                    HasSubstr("# TODO: geometry: 1024 is taken for BLOCK * 4")));
}

constexpr char kStride[] =
    "__global__ void k(float* x, int n) {\n"
    "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = 1;\n}\n";

TEST_F(ConsistentDraftTest, ACapOfTheGridIsNotMadeOfTheBlock) {
  EXPECT_THAT(Taken(absl::StrCat(kStride, "void run(float* x, int n) {\n  int blocks = min((n + 255) / 256, 1024);\n",
                                 "  k<<<blocks, 256>>>(x, n);\n}\n")),
              HasSubstr("grid = [\"min(ceil_div(n, BLOCK), 1024)\"]"));
  EXPECT_THAT(Taken("template <int BLOCK_M>\n__global__ void k(const float* x, float* y, int n) {\n"
                    "  int i = blockIdx.x * BLOCK_M + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n"
                    "void run(const float* x, float* y, int n) { k<64><<<min((n + 63) / 64, 64), 64>>>(x, y, n); }\n"),
              HasSubstr("grid = [\"min(ceil_div(n, TUNE_BLOCK_M), 64)\"]"));
}

TEST_F(ConsistentDraftTest, ATileThatTheKernelHasAsANumberDoesNotFollowTheBlock) {
  const auto of = [&](const std::string& constant, const std::string& tile) {
    return Taken(absl::StrCat(constant, "__global__ void k(float* x, int n) {\n  int base = blockIdx.x * ", tile,
                              ";\n  for (int j = threadIdx.x; j < ", tile,
                              "; j += blockDim.x) if (base + j < n) x[base + j] = 1;\n}\n"
                              "void run(float* x, int n) { k<<<(n + 1023) / 1024, 256>>>(x, n); }\n"));
  };
  EXPECT_THAT(of("", "1024"), AllOf(HasSubstr("grid = [\"ceil_div(n, 1024)\"]"), HasSubstr("block = [\"BLOCK\"]"),
                                    HasSubstr("# TODO: grid: BLOCK is varied and `1024` does not follow it")));
  EXPECT_THAT(of("constexpr int kSpan = 1024;\n", "kSpan"), HasSubstr("grid = [\"ceil_div(n, 1024)\"]"));
  const std::string own = Taken(
      "constexpr int kSpan = 256;\n__global__ void k(float* x, int n) {\n"
      "  int i = blockIdx.x * kSpan + threadIdx.x;\n  if (i < n && blockDim.x > 1) x[i] = 1;\n}\n"
      "void run(float* x, int n) { k<<<(n + 255) / 256, 256>>>(x, n); }\n");
  EXPECT_THAT(own, AllOf(HasSubstr("grid = [\"ceil_div(n, 256)\"]"), HasSubstr("block = [\"256\"]")));
}

TEST_F(ConsistentDraftTest, ABlockOnWhichANumberOfTheGridMayDependIsNotVaried) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int rows) {\n"
                    "  int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize;\n"
                    "  if (row < rows) x[row] = 1;\n}\n"
                    "void run(float* x, int rows) { k<<<(rows + 7) / 8, 256>>>(x, rows); }\n"),
              AllOf(HasSubstr("grid = [\"ceil_div(rows, 8)\"]"), HasSubstr("block = [\"256\"]")));
}

TEST_F(ConsistentDraftTest, SharedMemoryOfAnotherCountDoesNotFollowTheBlock) {
  const std::string kernel =
      "__global__ void k(float* x, int n) {\n  extern __shared__ float s[];\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = s[0];\n}\n";
  const auto launched = [&](const std::string& before, const std::string& block, const std::string& bytes) {
    return Taken(absl::StrCat(kernel, "void run(float* x, int n) {\n", before, "  k<<<(n + 127) / 128, ", block, ", ",
                              bytes, ">>>(x, n);\n}\n"));
  };
  EXPECT_THAT(launched("  const int heads = 128;\n", "128", "heads * sizeof(float)"),
              AllOf(HasSubstr("shared = \"512\""), HasSubstr("# TODO: shared: BLOCK is varied")));
  EXPECT_THAT(launched("  int count = 128;\n", "count", "count * sizeof(float)"), HasSubstr("shared = \"BLOCK * 4\""));
  EXPECT_THAT(launched("  size_t bytes = 128 * sizeof(float);\n", "128", "bytes"), HasSubstr("shared = \"BLOCK * 4\""));
  EXPECT_THAT(launched("  dim3 block(128), tile(128, 2);\n", "block", "block.x * sizeof(float)"),
              HasSubstr("shared = \"BLOCK * 4\""));
  EXPECT_THAT(launched("  dim3 block(128), tile(128, 2);\n", "block", "tile.x * sizeof(float)"),
              AllOf(HasSubstr("shared = \"512\""), HasSubstr("# TODO: shared: BLOCK is varied")));
  EXPECT_THAT(launched("", "128", "4096"),
              AllOf(HasSubstr("shared = \"4096\""), HasSubstr("# TODO: shared: BLOCK is varied")));
}

TEST_F(ConsistentDraftTest, NumbersBesideABlockThatIsAVariableAreTold) {
  const std::string toml = Taken(
      "constexpr int kThreads = 128;\n__global__ void k(float* x, int n) {\n  __shared__ float s[kThreads];\n"
      "  int i = blockIdx.x * kThreads + threadIdx.x;\n  if (i < n) x[i] = s[0];\n}\n"
      "void run(float* x, int n) { k<<<(n + 127) / 128, kThreads, 512>>>(x, n); }\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("block = [\"kThreads\"]"),
                          HasSubstr("# TODO: grid: kThreads is varied and `128` does not follow it"),
                          HasSubstr("# TODO: shared: kThreads is varied and `512` does not follow it")));
}

TEST_F(ConsistentDraftTest, ABlockIsNoProductOfTiles) {
  const std::string toml = Taken(
      "template <int BM, int BN, int TM, int TN>\n__global__ void k(float* c, int m, int n) {\n"
      "  int i = blockIdx.y * BM + threadIdx.x / (BN / TN) * TM, j = blockIdx.x * BN + threadIdx.x % (BN / TN) * TN;\n"
      "  if (i < m && j < n) c[i * n + j] = 1;\n}\n"
      "void run(float* c, int m, int n) {\n"
      "  k<64, 128, 4, 8><<<dim3((n + 127) / 128, (m + 63) / 64), 256>>>(c, m, n);\n}\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("block = [\"256\"]"), HasSubstr("entry = \"k<64, 128, 4, 8>\""),
                          HasSubstr("grid = [\"ceil_div(n, 128)\", \"ceil_div(m, 64)\"]"),
                          Not(HasSubstr("taken for the template argument"))));
}

TEST_F(ConsistentDraftTest, AProductHasATemplateArgumentOnce) {
  const std::string toml = Taken(
      "template <int NUM_WARPS>\n__global__ void k(const float* x, float* y, int n) {\n"
      "  for (int j = 0; j < 8; ++j) {\n    int i = (blockIdx.x * 8 + j) * NUM_WARPS * 32 + threadIdx.x;\n"
      "    if (i < n) y[i] = x[i];\n  }\n}\n"
      "void run(const float* x, float* y, int n) { k<8><<<(n + 2047) / 2048, 256>>>(x, y, n); }\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("grid = [\"ceil_div(n, TUNE_NUM_WARPS * 32 * 8)\"]"),
                          HasSubstr("block = [\"TUNE_NUM_WARPS * 32\"]"),
                          HasSubstr("# TODO: geometry: 2048 is taken for TUNE_NUM_WARPS * 32 * 8")));
  const std::string twice = Taken(
      "template <int C, int D, int TILE_A, int TILE_B>\n__global__ void k(float* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] += C + D + TILE_A + TILE_B;\n}\n"
      "void run(float* x, int n) { k<2, 2, 64, 64><<<(n + 127) / 128, 32>>>(x, n); }\n");
  EXPECT_THAT(twice, AllOf(HasSubstr("entry = \"k<2, 2, 64, 64>\""), HasSubstr("grid = [\"ceil_div(n, 128)\"]"),
                           HasSubstr("block = [\"32\"]")));
}

TEST_F(ConsistentDraftTest, NumbersBeyondAnyBlockAreNoProducts) {
  EXPECT_THAT(
      TomlOf("template <long WARPS, long TILE>\n__global__ void k(float* x, int n) { if (threadIdx.x < n) x[0] = WARPS "
             "+ TILE; }\n"
             "void run(float* x, int n) { k<9223372036854775807, 4611686018427387904><<<(n + 1) / "
             "9223372036854775807, 256>>>(x, n); }\n"),
      HasSubstr("entry = \"k<9223372036854775807, 4611686018427387904>\""));
}

TEST_F(ConsistentDraftTest, ABufferThatIsPassedTwiceIsOneTensor) {
  const std::string toml = Taken(
      "__global__ void k(const float* x, float* y, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i];\n}\n"
      "int main() {\n  const int n = 1024;\n  float* a;\n  cudaMalloc(&a, n * sizeof(float));\n"
      "  k<<<n / 256, 256>>>(a, a, n);\n}\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("arguments = [\"x\", \"x\", \"n\"]"), HasSubstr("role = \"inout\"")));
}

TEST_F(ConsistentDraftTest, PointersIntoOneBufferAreToldWithTheirLine) {
  const std::string toml = Taken(
      "__global__ void k(float* a, const float4* b, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) a[i] = b[i].x;\n}\n"
      "int main() {\n  const int n = 1024;\n  float* a;\n  cudaMalloc(&a, 5 * n * sizeof(float));\n"
      "  float* b = a + n;\n  k<<<n / 256, 256>>>(a, (float4*)b, n);\n}\n");
  EXPECT_THAT(toml,
              HasSubstr("# TODO: memory: line 10 passes `a` and `a + n`, one allocation; here a and b are tensors "
                        "of their own, and an argument has no offset"));
}

TEST_F(ConsistentDraftTest, OneMemoryOfATensorObjectIsOneTensorOrHasATodo) {
  const auto passed = [&](const std::string& a, const std::string& b) {
    return Taken(
        absl::StrCat("#include <torch/extension.h>\n__global__ void k(const float* in, float* out, int n) {\n"
                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = in[i];\n}\n"
                     "struct Params { float* x; };\n"
                     "void run(torch::Tensor x, thrust::device_vector<float>& v, float* raw, Params params, int n) {\n"
                     "  float* buf;\n  cudaMalloc(&buf, 2 * n * sizeof(float));\n  float* p = x.data_ptr<float>();\n"
                     "  k<<<(n + 255) / 256, 256>>>(",
                     a, ", ", b, ", n);\n}\n"));
  };
  const std::string vector = "thrust::raw_pointer_cast(v.data())";
  for (const std::string& text : {std::string("x.data_ptr<float>()"), vector, std::string("params.x")}) {
    EXPECT_THAT(passed(text, text), AllOf(HasSubstr("arguments = [\"in\", \"in\", \"n\"]"), Not(HasSubstr("memory:"))));
  }
  EXPECT_THAT(passed("&raw[0]", "raw"), HasSubstr("arguments = [\"in\", \"in\", \"n\"]"));
  for (const auto& [a, b] :
       std::vector<std::pair<std::string, std::string>>{{"x.data_ptr<float>()", "x.data_ptr<float>() + n"},
                                                        {"p", "x.data_ptr<float>() + n"},
                                                        {"x.slice(0, n).data_ptr<float>()", "x.data_ptr<float>()"},
                                                        {"buf", "n + buf"},
                                                        {"raw", "n + raw"},
                                                        {"raw", "&raw[n]"},
                                                        {vector, vector + " + n"},
                                                        {"params.x", "params.x + n"}}) {
    EXPECT_THAT(passed(a, b), AllOf(HasSubstr("arguments = [\"in\", \"out\", \"n\"]"), HasSubstr("# TODO: memory: ")))
        << a << ", " << b;
  }
}

TEST_F(ConsistentDraftTest, NumbersThatDisagreeAreToldBesideTheSize) {
  const std::string kernel =
      "__global__ void k(float* x, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] = 1;\n}\n";
  EXPECT_THAT(Taken(kernel + "void run(float* x, int n) { k<<<(n + 255) / 256, 256>>>(x, n); }\n"
                             "int main() {\n  float* x;\n  run(x, 1024);\n  run(x, 4096);\n}\n"),
              HasSubstr("n = 1024  # TODO: another caller passes 4096: which is right?"));
  EXPECT_THAT(Taken("#define N 1024\n#undef N\n#define N 2048\n" + kernel +
                    "void run(float* x) { int n = N; k<<<4, 256>>>(x, N); }\n"),
              HasSubstr("which is right?"));
}

TEST_F(ConsistentDraftTest, EachPlaceOfABufferIsOneTensor) {
  const std::string toml = Taken(
      "__global__ void k(const float* a, const float* b, float* c, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] + b[i];\n}\n"
      "void run(float* x, int n) {\n  k<<<(n + 255) / 256, 256>>>(x, x + n, x + n, n);\n"
      "  k<<<(n + 255) / 256, 256>>>(x + n, x + n, x, n);\n}\n",
      "run");
  EXPECT_THAT(toml, AllOf(HasSubstr("arguments = [\"x\", \"x_2\", \"x_2\", \"n\"]"),
                          HasSubstr("arguments = [\"x_2\", \"x_2\", \"x\", \"n\"]"), HasSubstr("# TODO: memory: ")));
}

TEST_F(ConsistentDraftTest, LaunchesThatGetOtherPlacesOfOneBufferAreTold) {
  EXPECT_THAT(Taken(absl::StrCat(kStride, "void run(float* x, int n) {\n  k<<<(n + 255) / 256, 256>>>(x, n);\n",
                                 "  k<<<(n + 255) / 256, 256>>>(x + n, n);\n}\n"),
                    "run"),
              HasSubstr("# TODO: memory: lines 5 and 6 pass `x` and `x + n`, one allocation; here x is both"));
}

TEST_F(ConsistentDraftTest, OfManyCallersThreeNumbersAreTold) {
  std::string calls;
  for (int i = 1; i <= 2000; ++i) absl::StrAppend(&calls, "  run(x, ", 100 * i, ");\n");
  EXPECT_THAT(Taken(absl::StrCat(kStride, "void run(float* x, int n) { k<<<(n + 255) / 256, 256>>>(x, n); }\n",
                                 "int main() {\n  float* x;\n", calls, "}\n"),
                    "run"),
              HasSubstr("n = 100  # TODO: other callers pass 200, 300, 400, …: which is right?\n"));
}

TEST_F(ConsistentDraftTest, ANumberThatAnotherLaunchTellsIsNoGuess) {
  const std::string kernel =
      "(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n";
  EXPECT_THAT(Taken(absl::StrCat("__global__ void a", kernel, "__global__ void b", kernel,
                                 "void ha(float* x, int n) { a<<<(n + 255) / 256, 256>>>(x, n); }\n"
                                 "void hb(float* x, int n) { b<<<(n + 255) / 256, 256>>>(x, n); }\n"
                                 "int main() { float* x; hb(x, 4096); }\n"),
                    "a,b"),
              HasSubstr("n = 4096\n"));
}

TEST_F(ConsistentDraftTest, SizesAreThoseOfTheHostsStructsAndDims) {
  const std::string dims = Taken(
      "__global__ void k(float* x, int w, int h) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  int j = blockIdx.y * blockDim.y + threadIdx.y;\n  if (i < w && j < h) x[j * w + i] = 1;\n}\n"
      "int main() {\n  dim3 size(640, 320, 1), block(16, 16);\n  float* x;\n"
      "  dim3 grid(size.x / block.x, size.y / block.y);\n  k<<<grid, block>>>(x, size.x, size.y);\n}\n");
  EXPECT_THAT(dims, AllOf(HasSubstr("w = 640\n"), HasSubstr("h = 320\n"),
                          HasSubstr("grid = [\"floor(w / BLOCK_X)\", \"floor(h / BLOCK_Y)\"]")));
  const std::string fields = Taken(
      "struct Grid { int nx, ny; };\n__global__ void k(float* x, Grid g) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;\n"
      "  if (i < g.nx && j < g.ny) x[j * g.nx + i] = 1;\n}\n"
      "int main(int argc, char** argv) {\n  Grid g{256, 128};\n  if (argc > 2) { g.nx = atoi(argv[1]); g.ny = "
      "atoi(argv[2]); }\n  float* x;\n  k<<<dim3((g.nx + 255) / 256, g.ny), 256>>>(x, g);\n}\n");
  EXPECT_THAT(fields, AllOf(HasSubstr("nx = 256\n"), HasSubstr("ny = 128\n"), HasSubstr("shape = [\"ny\", \"nx\"]"),
                            HasSubstr("grid = [\"ceil_div(nx, BLOCK)\", \"ny\"]")));
}

TEST_F(ConsistentDraftTest, AVariableThatIsGivenAnotherValueHasOtherBounds) {
  const std::string toml = Taken(
      "#define T 16\n__global__ void k(const float* in, float* out, int w, int h) {\n  __shared__ float t[T][T + 1];\n"
      "  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;\n"
      "  if (x < w && y < h) t[threadIdx.y][threadIdx.x] = in[y * w + x];\n  __syncthreads();\n"
      "  x = blockIdx.y * T + threadIdx.x;\n  y = blockIdx.x * T + threadIdx.y;\n"
      "  if (x < h && y < w) out[y * h + x] = t[threadIdx.x][threadIdx.y];\n}\n"
      "void run(const float* in, float* out, int w, int h) {\n"
      "  k<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(in, out, w, h);\n}\n");
  EXPECT_THAT(toml, AllOf(HasSubstr("name = \"in\"\ntype = \"f32\"\nshape = [\"h\", \"w\"]"),
                          HasSubstr("name = \"out\"\ntype = \"f32\"\nshape = [\"w\", \"h\"]")));
}

TEST_F(ConsistentDraftTest, SharedMemoryCountsStructsOfTheSource) {
  EXPECT_THAT(Taken("struct Particle { float x, y, z, m; };\n__global__ void k(const Particle* p, float* f, int n) {\n"
                    "  extern __shared__ Particle s[];\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) { s[threadIdx.x] = p[i]; f[i] = s[threadIdx.x].x; }\n}\n"
                    "void run(const Particle* p, float* f, int n) {\n"
                    "  k<<<(n + 255) / 256, 256, 256 * sizeof(Particle)>>>(p, f, n);\n}\n"),
              HasSubstr("shared = \"BLOCK * 16\""));
}

TEST_F(ConsistentDraftTest, AClusterIsTheSourcesOwn) {
  const std::string body = "{ cooperative_groups::this_cluster().sync(); x[blockIdx.x] = 1; }\n";
  EXPECT_THAT(Taken("__global__ void __cluster_dims__(4, 1, 1) k(float* x, int n) " + body +
                    "void run(float* x, int n) { k<<<4 * n, 64>>>(x, n); }\n"),
              HasSubstr("cluster = [\"4\", \"1\", \"1\"]"));
  EXPECT_THAT(
      Taken("__global__ void k(float* x, int n) { asm volatile(\"barrier.cluster.arrive;\"); x[blockIdx.x] = n; }\n"
            "void run(float* x, int n) { k<<<4 * n, 64>>>(x, n); }\n"),
      AllOf(HasSubstr("cluster = [\"2\"]"), HasSubstr("say how many blocks one has")));
  EXPECT_THAT(Taken("__global__ void k(float* x, int n) " + body +
                    "void run(float* x, int n) {\n  cudaLaunchConfig_t config = {0};\n  config.gridDim = 8 * n;\n"
                    "  config.blockDim = 64;\n  cudaLaunchAttribute attribute[1];\n"
                    "  attribute[0].val.clusterDim.x = 8;\n  config.attrs = attribute;\n"
                    "  cudaLaunchKernelEx(&config, k, x, n);\n}\n"),
              HasSubstr("cluster = [\"8\"]"));
}

TEST_F(ConsistentDraftTest, AClusterIsThatOfTheLaunchsOwnConfiguration) {
  const auto configured = [](const std::string& kernel, const std::string& rest) {
    return absl::StrCat("  cudaLaunchConfig_t c", kernel, " = {0};\n  c", kernel, ".gridDim = (n + 255) / 256;\n  c",
                        kernel, ".blockDim = 256;\n", rest, "  cudaLaunchKernelEx(&c", kernel, ", ", kernel,
                        ", x, n);\n");
  };
  const std::string body =
      "(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n";
  const std::string toml =
      Taken(absl::StrCat("__global__ void a", body, "__global__ void b", body, "void run(float* x, int n) {\n",
                         configured("a",
                                    "  cudaLaunchAttribute of_a[1];\n  of_a[0].val.clusterDim.x = 4;\n"
                                    "  of_a[0].val.clusterDim.y = 1;\n  ca.attrs = of_a;\n  ca.numAttrs = 1;\n"),
                         configured("b", ""), "}\n"),
            "run");
  const size_t first = toml.find("cluster = [\"4\"]"), second = toml.find("entry = \"::b\"");
  ASSERT_NE(first, std::string::npos) << toml;
  EXPECT_LT(first, second);
  EXPECT_EQ(toml.find("cluster = ", second), std::string::npos) << toml;
}

TEST_F(ConsistentDraftTest, AClusterMayBeGivenThroughTheConfiguration) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int n) { x[blockIdx.x] = n; }\nvoid run(float* x, int n) {\n"
                    "  cudaLaunchAttribute of[1];\n  cudaLaunchConfig_t config = {8 * n, 64, 0, 0, of, 1};\n"
                    "  config.gridDim = 8 * n;\n  config.blockDim = 64;\n  config.attrs[0].val.clusterDim.x = 8;\n"
                    "  cudaLaunchKernelEx(&config, k, x, n);\n}\n"),
              HasSubstr("cluster = [\"8\"]"));
}

TEST_F(ConsistentDraftTest, AClusterThatADeviceFunctionUsesIsATodo) {
  EXPECT_THAT(
      Taken("namespace a { namespace b {\n__device__ void meet() { asm volatile(\"barrier.cluster.arrive;\"); }\n} }\n"
            "__global__ void k(float* x, int n) { a::b::meet(); x[blockIdx.x] = n; }\n"
            "void run(float* x, int n) { k<<<4 * n, 64>>>(x, n); }\n"),
      AllOf(HasSubstr("cluster = [\"2\"]"), HasSubstr("say how many blocks one has")));
}

TEST_F(ConsistentDraftTest, ABlockThatASizeMakesFitsTheGpu) {
  const std::string toml = Taken(
      "__global__ void k(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n"
      "void run(float* x, int blocks, int lanes) { k<<<blocks, 32 * lanes>>>(x); }\n");
  EXPECT_THAT(toml, HasSubstr("lanes = 32  # TODO: "));
  EXPECT_THAT(toml, HasSubstr("a block has at most 1024 threads"));
}

TEST_F(ConsistentDraftTest, AConstantThatIsPassedIsNoVariable) {
  EXPECT_THAT(
      Taken("__global__ void k(float* x, int padding, int n) { if (threadIdx.x < n) x[threadIdx.x] = padding; }\n"
            "int main() {\n  const int padding = 1;\n  int n = 64;\n  float* x;\n"
            "  cudaMalloc(&x, n * sizeof(float));\n  k<<<1, 64>>>(x, padding, n);\n}\n"),
      Not(HasSubstr("[[variable]]\nname = \"padding\"")));
}

TEST_F(ConsistentDraftTest, AVariableThatNothingUsesIsLeftOut) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int count) { if (threadIdx.x < count) x[blockIdx.x] = count; }\n"
                    "int main() {\n  const int block_cnt = 500;\n  const int count = block_cnt;\n  float* x;\n"
                    "  cudaMalloc(&x, sizeof(float) * block_cnt);\n  k<<<count, 256>>>(x, count);\n}\n"),
              HasSubstr("#   BLOCK_CNT = 500: neither the kernel nor the launch uses it"));
}

TEST_F(ConsistentDraftTest, ARangeIsOneThatTheTypeHolds) {
  EXPECT_THAT(Taken("__global__ void k(const unsigned char* query, const float* table, float* y, int m, int n) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = table[query[i] * m];\n}\n"),
              HasSubstr("fill = { integers = [0, \"255\"] }"));
}

TEST_F(ConsistentDraftTest, APointerThatIsNotConstIsTheOutputWhereNoneIsFound) {
  EXPECT_THAT(Taken("struct Pixel { unsigned char r, g; __device__ void Set(int v); };\n"
                    "__global__ void k(Pixel* pixel, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) pixel[i].Set(i);\n}\n"),
              HasSubstr("role = \"inout\""));
}

TEST_F(ConsistentDraftTest, LinesThatEndWithCrAndLfAreTaken) {
  EXPECT_THAT(Taken("__global__ void k(float* x, int n) {\r\n#pragma unroll 4\r\n"
                    "  for (int i = 0; i < n; ++i) x[i] = 1;\r\n}\r\n"),
              HasSubstr("replaces = \"#pragma unroll {}\""));
}

TEST_F(DraftTest, CubAsAWholeNeedsNvcc) {
  const std::string kernel = "extern \"C\" __global__ void k(float* x) { x[0] = 1; }\n";
  EXPECT_THAT(TomlOf("#include <cub/cub.cuh>\n" + kernel), HasSubstr("compiler = \"nvcc\"  # TODO: <cub/cub.cuh>"));
  EXPECT_THAT(TomlOf("#include <cub/warp/warp_reduce.cuh>\n" + kernel), Not(HasSubstr("compiler")));
}

TEST_F(DraftTest, AnUnknownEntryIsNamedWithWhatWasMeant) {
  EXPECT_THAT(ErrorOf("__global__ void softmax(int* x) { x[0] = 1; }\n", "sofmax"), HasSubstr("did you mean softmax?"));
}

TEST_F(DraftTest, AFileThatIncludesItselfIsAnError) {
  EXPECT_THAT(ErrorOf("#include \"k.cu\"\n__global__ void k(int* x) { x[0] = 1; }\n"),
              HasSubstr("includes itself without end"));
}

TEST_F(DraftTest, AParserThatNeverEndsIsStopped) {
  std::ofstream(folder_.path() / "twice.cu") << "#include \"twice.cu\"\n#include \"twice.cu\"\n";
  const absl::StatusOr<DraftedBundle> drafted = DraftBundle(
      {.source = folder_.path() / "twice.cu", .entry = "", .reference = "", .limit = absl::Milliseconds(300)});
  EXPECT_FALSE(drafted.ok());
  EXPECT_THAT(std::string(drafted.status().message()), HasSubstr("itself"));
}

TEST_F(DraftTest, AccessorsAreAnErrorThatSaysWhatToChange) {
  EXPECT_THAT(
      ErrorOf("#include <torch/extension.h>\n"
              "__global__ void k(torch::PackedTensorAccessor32<float, 2> x) { x[0][0] = 1; }\n"),
      AllOf(HasSubstr("k.cu:2: k takes x as"), HasSubstr("a type of PyTorch's"), HasSubstr("x.data_ptr<float>()")));
}

TEST_F(DraftTest, AMissingHeaderIsARemarkAndNoError) {
  EXPECT_THAT(
      TomlOf(
          "#include \"lost.cuh\"\n#include <cub/cub.cuh>\nextern \"C\" __global__ void k(real_t* x) { x[0] = 1; }\n"),
      AllOf(HasSubstr("# TODO: #include \"lost.cuh\" was not found"), HasSubstr("include = [\"cub\"]"),
            HasSubstr("# TODO: type: real_t is declared in a header that was not found")));
}

TEST_F(DraftTest, HeadersOfTheFolderAreFilesOfTheBundle) {
  fs::create_directories(folder_.path() / "include");
  std::ofstream(folder_.path() / "include/types.cuh") << "#pragma once\nusing real = double;\n";
  absl::StatusOr<DraftedBundle> drafted =
      DraftOf("#include \"include/types.cuh\"\nextern \"C\" __global__ void k(real* x) { x[0] = 1; }\n");
  ASSERT_TRUE(drafted.ok()) << drafted.status();
  EXPECT_THAT(drafted->files["kernel.toml"],
              AllOf(HasSubstr("files = [\"include/types.cuh\"]"), HasSubstr("type = \"f64\"")));
  EXPECT_TRUE(drafted->files.contains("include/types.cuh"));
}

TEST_F(DraftTest, AMissingLibclangIsOneLineWithThePackage) {
  setenv("PAWL_LIBCLANG", "/nowhere/libclang.so", 1);
  const std::string error = ErrorOf("__global__ void k(int* x) { x[0] = 1; }");
  unsetenv("PAWL_LIBCLANG");
  EXPECT_THAT(error, AllOf(HasSubstr("libclang was not found"), HasSubstr("apt install libclang1")));
}

}  // namespace
}  // namespace pawl
