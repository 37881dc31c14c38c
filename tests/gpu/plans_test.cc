// Small bundles of every type, fill and form of launch, as users write them, on a real GPU. Kernels check what a fill
// promises: where it does not hold they leave the output as it was, and random bytes are no right output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/build/builder.h"
#include "worker/build/built_variant.h"
#include "worker/check/start_variant.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string name;
  std::string toml;    // tensors, scalars, launches and what else is its own
  std::string kernel;  // `step` of the candidate; `expected` of the reference is the same unless there is another
  std::string reference;
  std::string failure;       // a part of the message; empty: it passes
  bool whole_trial = false;  // times, sanitizer and profile too
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

constexpr char kHead[] = R"toml(
name = "case"
source = "kernel.cu"
[goal]
size = "main"
speedup = 1.1
[[size]]
name = "tiny"
N = 96
[[size]]
name = "main"
N = 20000
[[variable]]
name = "UNUSED"
values = [0, 1]
start = 0
[reference]
source = "reference.cu"
[tolerance]
absolute = 0.001
relative = 0.0009
)toml";

constexpr char kLaunches[] = R"toml(
[[launch]]
entry = "step"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = [ARGUMENTS]
[[reference.launch]]
entry = "expected"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = [ARGUMENTS]
)toml";

std::string Launches(const std::string& arguments) {
  return absl::StrReplaceAll(kLaunches, {{"ARGUMENTS", arguments}});
}

std::string Tensor(const std::string& name, const std::string& type, const std::string& rest,
                   const std::string& shape = "\"N\"") {
  return absl::StrCat("[[tensor]]\nname = \"", name, "\"\ntype = \"", type, "\"\nshape = [", shape, "]\n", rest, "\n");
}

std::string Output(const std::string& type, const std::string& shape = "\"N\"") {
  const std::string tolerance = type == "f64" ? "\ntolerance = { absolute = 1e-10, relative = 1e-10 }" : "";
  return Tensor("y", type, absl::StrCat("role = \"output\"", tolerance), shape);
}

// A kernel of one element a thread. Of the reference it is `expected`.
std::string Each(const std::string& parameters, const std::string& body, const std::string& before = "") {
  return absl::StrCat("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n", before,
                      "extern \"C\" __global__ void step(", parameters,
                      ") {\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  ", body,
                      "\n}\n");
}

Case OfType(const std::string& type, const std::string& cpp, const std::string& expression, const std::string& input) {
  return {.name = absl::StrCat("type_", type),
          .toml = absl::StrCat(Tensor("x", type, input), Output(type), Launches("\"x\", \"y\", \"N\"")),
          .kernel =
              Each(absl::StrCat("const ", cpp, "* x, ", cpp, "* y, int n"), absl::StrCat("y[i] = ", expression, ";"))};
}

Case Packed(const std::string& type, const std::string& range) {
  return {.name = absl::StrCat("type_", type),
          .toml = absl::StrCat(Tensor("x", type, range), Output(type), Launches("\"x\", \"y\", \"N\"")),
          .kernel = Each("const unsigned char* x, unsigned char* y, int n", "if (i < n / 2) y[i] = x[i] ^ 0x11;")};
}

std::vector<Case> Types() {
  const std::string small = "fill = { integers = [0, 50] }";
  std::vector<Case> cases = {
      OfType("f16", "__half", "__float2half(2 * __half2float(x[i]))", "fill = \"normal\"\nrange = [-100, 100]"),
      OfType("bf16", "__nv_bfloat16", "__float2bfloat16(2 * __bfloat162float(x[i]))", "range = [-100, 100]"),
      OfType("f32", "float", "2 * x[i]", "range = [-100, 100]"),
      OfType("f64", "double", "2 * x[i]", "range = [-100, 100]"),
      OfType("f8e4m3", "__nv_fp8_e4m3", "__nv_fp8_e4m3(2 * float(x[i]))", "range = [-100, 100]"),
      OfType("f8e5m2", "__nv_fp8_e5m2", "__nv_fp8_e5m2(2 * float(x[i]))", "range = [-100, 100]"),
      OfType("bool", "unsigned char", "x[i] == 0", ""),
      Packed("i4", "fill = { integers = [-8, 7] }"),
      Packed("u4", "fill = { integers = [0, 15] }")};
  for (const auto& [type, cpp] : {std::pair{"i8", "signed char"},
                                  {"u8", "unsigned char"},
                                  {"i16", "short"},
                                  {"u16", "unsigned short"},
                                  {"i32", "int"},
                                  {"u32", "unsigned"},
                                  {"i64", "long long"},
                                  {"u64", "unsigned long long"}}) {
    cases.push_back(OfType(type, cpp, "x[i] + 1", small));
  }
  // Doubles do not tell these apart: an error in the last bit must show all the same.
  cases.push_back(OfType("u64", "unsigned long long", "x[i] ^ 1", "fill = { integers = [0, \"2^63\"] }"));
  cases.back().name = "type_u64_wide";
  return cases;
}

Case OfFill(const std::string& name, const std::string& type, const std::string& cpp, const std::string& fill,
            const std::string& holds, const std::string& value = "float(x[i]) + i") {
  return {.name = absl::StrCat("fill_", name),
          .toml = absl::StrCat(Tensor("x", type, fill), Output("f32"), Launches("\"x\", \"y\", \"N\"")),
          .kernel = Each(absl::StrCat("const ", cpp, "* x, float* y, int n"),
                         absl::StrCat("if (", holds, ") y[i] = ", value, ";"))};
}

std::vector<Case> Fills() {
  return {
      OfFill("integers", "i64", "long long", "fill = { integers = [5, \"N - 1\"] }", "x[i] >= 5 && x[i] < n"),
      OfFill("integers_of_floats", "f32", "float", "fill = { integers = [-3, 3] }",
             "x[i] == rintf(x[i]) && fabsf(x[i]) <= 3"),
      OfFill("uniform_range", "f32", "float", "fill = { uniform = [-2, -1] }", "x[i] >= -2 && x[i] <= -1"),
      OfFill("zeros", "f32", "float", "fill = \"zeros\"", "x[i] == 0"),
      OfFill("ones", "i16", "short", "fill = \"ones\"", "x[i] == 1"),
      OfFill("constant", "f8e4m3", "__nv_fp8_e4m3", "fill = { constant = 0.5 }", "float(x[i]) == 0.5f"),
      OfFill("iota", "i32", "int", "fill = \"iota\"", "x[i] == i", "3.0f * x[i]"),
      OfFill("sorted", "i32", "int", "fill = { sorted = [0, 1000000] }", "i + 1 == n || x[i] <= x[i + 1]"),
      OfFill("sorted_floats", "f32", "float", "fill = { sorted = [-1, 1] }", "i + 1 == n || x[i] <= x[i + 1]"),
      OfFill("bytes", "u8", "unsigned char", "fill = \"bytes\"", "true"),
      {.name = "fill_permutation",
       .toml =
           absl::StrCat(Tensor("x", "i32", "fill = \"permutation\""), Output("f32"), Launches("\"x\", \"y\", \"N\"")),
       .kernel = Each("const int* x, float* y, int n", "if (x[i] >= 0 && x[i] < n) y[x[i]] = 2 * i;")},
      {.name = "fill_csr_offsets",
       .toml = absl::StrCat(Tensor("x", "i32", "fill = { csr_offsets = \"8 * N\" }", "\"N + 1\""), Output("f32"),
                            Launches("\"x\", \"y\", \"N\"")),
       .kernel = Each("const int* x, float* y, int n",
                      "if (x[0] == 0 && x[n] == 8 * n && x[i] <= x[i + 1]) y[i] = x[i + 1] - x[i] + i % 7;")},
      {.name = "fill_embedding",
       .toml = absl::StrCat(Tensor("x", "i64", "fill = { integers = [0, 49999] }"),
                            Tensor("table", "f32", "range = [-4, 4]", "50000, 4"), Output("f32"),
                            Launches("\"x\", \"table\", \"y\", \"N\"")),
       .kernel = Each("const long long* x, const float* table, float* y, int n", "y[i] = 2 * table[x[i] * 4 + i % 4];"),
       .whole_trial = true},
      {.name = "fill_file",
       .toml = absl::StrCat(Tensor("x", "f32", "fill = { file = \"data.bin\" }", "\"N\", 1"), Output("f32"),
                            Launches("\"x\", \"y\", \"N\"")),
       .kernel = Each("const float* x, float* y, int n", "if (x[i] >= 1) y[i] = 2 * x[i];"),
       .whole_trial = true},
  };
}

// Repeats `step`, which reads ping, writes pong, and exchanges them.
Case Stencil(int repeat) {
  return {.name = absl::StrCat("swap_", repeat),
          .toml = absl::StrCat(
              Tensor("ping", "f32", "role = \"inout\"\nrange = [-4, 4]"), Tensor("pong", "f32", "role = \"scratch\""),
              "[[launch]]\nentry = \"step\"\ngrid = [\"ceil_div(N, 256)\"]\nblock = [256]\nrepeat = \"", repeat,
              "\"\nindex = \"pass\"\nswap = [\"ping\", \"pong\"]\narguments = [\"ping\", \"pong\", \"N\", \"pass\"]\n",
              "[[scalar]]\nname = \"steps\"\ntype = \"i32\"\nvalue = \"", repeat, "\"\n",
              "[[reference.launch]]\nentry = \"expected\"\ngrid = [1]\nblock = [1024]\n",
              "arguments = [\"ping\", \"N\", \"steps\"]\n"),
          .kernel = Each("const float* ping, float* pong, int n, int pass",
                         "pong[i] = 0.5f * ping[i] + 0.25f * ping[(i + 1) % n] + pass;"),
          // One block, in place: a pass reads what a thread and its neighbour hold before any of them writes.
          .reference = R"(
extern "C" __global__ void expected(float* x, int n, int steps) {
  for (int pass = 0; pass < steps; ++pass) {
    const float first = x[0];
    __syncthreads();
    for (int base = 0; base < n; base += blockDim.x) {
      const int i = base + threadIdx.x;
      float next = 0;
      if (i < n) next = 0.5f * x[i] + 0.25f * (i + 1 < n ? x[i + 1] : first) + pass;
      __syncthreads();
      if (i < n) x[i] = next;
      __syncthreads();
    }
  }
}
)",
          .whole_trial = repeat < 100};
}

constexpr char kScale[] =
    "extern \"C\" __global__ void expected(const float* x, float* y, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = 3 * x[i];\n}\n";

std::string OneLaunch(const std::string& rest, const std::string& grid = "\"ceil_div(N, 256)\"",
                      const std::string& arguments = "\"x\", \"y\", \"N\"") {
  return absl::StrCat("[[launch]]\nentry = \"step\"\ngrid = [", grid, "]\nblock = [256]\narguments = [", arguments,
                      "]\n", rest, "\n[[reference.launch]]\nentry = \"expected\"\ngrid = [\"ceil_div(N, 256)\"]\n",
                      "block = [256]\narguments = [\"x\", \"y\", \"N\"]\n");
}

std::string InAndOut() { return Tensor("x", "f32", "range = [-100, 100]") + Output("f32"); }

std::vector<Case> LaunchForms() {
  std::vector<Case> cases = {Stencil(1), Stencil(4), Stencil(5), Stencil(257)};
  cases.push_back(
      {.name = "inout",
       .toml = absl::StrCat(Tensor("x", "f32", "role = \"inout\"\nrange = [-100, 100]"), Launches("\"x\", \"N\"")),
       .kernel = Each("float* x, int n", "x[i] = 3 * x[i] + 1;"),
       .whole_trial = true});
  cases.push_back(
      {.name = "cooperative",
       .toml = absl::StrCat(InAndOut(), Tensor("sums", "f32", "role = \"scratch\"", "\"SM_COUNT\""),
                            OneLaunch("cooperative = true", "\"SM_COUNT\"", "\"x\", \"y\", \"sums\", \"N\"")),
       .kernel = R"(
#include <cooperative_groups.h>
extern "C" __global__ void step(const float* x, float* y, float* sums, int n) {
  if (threadIdx.x == 0) sums[blockIdx.x] = blockIdx.x;
  cooperative_groups::this_grid().sync();
  const float other = sums[gridDim.x - 1 - blockIdx.x];  // of a block that has run
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = 3 * x[i] + other + blockIdx.x - (gridDim.x - 1);
  }
}
)",
       .reference = kScale,
       .whole_trial = true});
  cases.push_back({.name = "cooperative_too_large",
                   .toml = absl::StrCat(InAndOut(), OneLaunch("cooperative = true", "\"64 * SM_COUNT\"")),
                   .kernel = Each("const float* x, float* y, int n", "y[i] = 3 * x[i];"),
                   .reference = kScale,
                   .failure = "at once"});
  for (const int cluster : {2, 16}) {  // more than 8 need a permission
    cases.push_back({.name = absl::StrCat("cluster_", cluster),
                     .toml = absl::StrCat(
                         InAndOut(), OneLaunch(absl::StrCat("cluster = [", cluster, "]"),
                                               absl::StrCat("\"ceil_div(N, 256 * ", cluster, ") * ", cluster, "\""))),
                     .kernel = Each("const float* x, float* y, int n",
                                    absl::StrCat("unsigned rank, size;\n  asm(\"mov.u32 %0, %%cluster_ctarank;\" : "
                                                 "\"=r\"(rank));\n  asm(\"mov.u32 %0, %%cluster_nctarank;\" : "
                                                 "\"=r\"(size));\n  if (size == ",
                                                 cluster, " && rank == blockIdx.x % size) y[i] = 3 * x[i];")),
                     .reference = kScale,
                     .whole_trial = cluster == 2});
  }
  cases.push_back({.name = "much_shared_memory",
                   .toml = absl::StrCat(InAndOut(), OneLaunch("shared = \"SHARED_PER_BLOCK\"")),
                   .kernel = Each("const float* x, float* y, int n",
                                  "extern __shared__ float s[];\n  unsigned bytes;\n  asm(\"mov.u32 %0, "
                                  "%%dynamic_smem_size;\" : \"=r\"(bytes));\n  const unsigned last = bytes / 4 - 1 - "
                                  "threadIdx.x;\n  s[last] = 3 * x[i];\n  y[i] = s[last];"),
                   .reference = kScale});
  cases.push_back(
      {.name = "structs",
       .toml = absl::StrCat(InAndOut(), "[[scalar]]\nname = \"small\"\ntype = \"i8\"\nvalue = \"-3\"\n",
                            "[[scalar]]\nname = \"wide\"\ntype = \"i64\"\nvalue = \"2^40\"\n",
                            "[[scalar]]\nname = \"half\"\ntype = \"f16\"\nvalue = \"1.5\"\n",
                            "[[struct]]\nname = \"value\"\nfields = [\"small\", \"x\", \"N\", \"wide\", \"half\"]\n",
                            "[[struct]]\nname = \"pointers\"\nfields = [\"x\", \"y\"]\nin_memory = true\n",
                            OneLaunch("", "\"ceil_div(N, 256)\"", "\"value\", \"pointers\", \"half\", \"N\"")),
       .kernel = Each("Value value, float** pointers, __half half, int n",
                      "if (value.small == -3 && value.wide == 1ll << 40 && value.n == n && value.x == pointers[0] &&\n"
                      "      __half2float(value.half) == 1.5f) pointers[1][i] = 2 * __half2float(half) * value.x[i];",
                      "struct Value { signed char small; const float* x; int n; long long wide; __half half; };\n"),
       .reference = kScale,
       .whole_trial = true});
  cases.push_back(
      {.name = "setup",
       .toml =
           absl::StrCat(InAndOut(), Tensor("w", "f32", "range = [-2, 2]\nstatic = true"),
                        Tensor("packed", "f32", "role = \"scratch\"\nstatic = true"),
                        "[setup]\nsource = \"setup.cu\"\n[[setup.launch]]\nentry = \"pack\"\n",
                        "grid = [\"ceil_div(N, 256)\"]\nblock = [256]\narguments = [\"w\", \"packed\", \"N\"]\n",
                        "[[launch]]\nentry = \"step\"\ngrid = [\"ceil_div(N, 256)\"]\nblock = [256]\n",
                        "arguments = [\"x\", \"packed\", \"y\", \"N\"]\n[[reference.launch]]\nentry = \"expected\"\n",
                        "grid = [\"ceil_div(N, 256)\"]\nblock = [256]\narguments = [\"x\", \"w\", \"y\", \"N\"]\n"),
       .kernel = Each("const float* x, const float* packed, float* y, int n", "y[i] = x[i] * packed[i];"),
       .reference = "extern \"C\" __global__ void expected(const float* x, const float* w, float* y, int n) "
                    "{\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) y[i] = x[i] * (2 * w[i] + 1);\n}\n",
       .whole_trial = true});
  cases.push_back(cases.back());
  cases.back().name = "setup_is_overwritten";
  cases.back().kernel =
      Each("const float* x, float* packed, float* y, int n", "y[i] = x[i] * packed[i]; packed[i] = 0;");
  cases.back().failure = "static tensor";
  cases.back().whole_trial = false;
  cases.push_back({.name = "many_launches",
                   .toml = absl::StrCat(Tensor("x", "i32", "role = \"inout\"\nfill = { integers = [0, 9] }"),
                                        "[[launch]]\nentry = \"step\"\ngrid = [\"ceil_div(N, 256)\"]\nblock = [256]\n",
                                        "repeat = \"10000\"\nindex = \"pass\"\narguments = [\"x\", \"N\", \"pass\"]\n",
                                        "[[reference.launch]]\nentry = \"expected\"\ngrid = [\"ceil_div(N, 256)\"]\n",
                                        "block = [256]\narguments = [\"x\", \"N\"]\n"),
                   .kernel = Each("int* x, int n, int pass", "x[i] += pass;"),
                   .reference = "extern \"C\" __global__ void expected(int* x, int n) {\n  const int i = blockIdx.x * "
                                "blockDim.x + threadIdx.x;\n  if (i < n) x[i] += 49995000;\n}\n"});
  // A __constant__ table that the host fills, and a loop of two launches, odd and even.
  const std::string taps =
      "[[tensor]]\nname = \"taps\"\ntype = \"f32\"\nshape = [8]\nfill = { uniform = [0.5, 1.5] }\nstatic = true\n";
  const std::string symbol = "[[symbol]]\nname = \"own::taps\"\ntensor = \"taps\"\n";
  const std::string geometry = "grid = [\"ceil_div(N, 256)\"]\nblock = [256]\n";
  const std::string read_taps = Each("const float* x, float* y, int n", "y[i] = x[i] * own::taps[i % 8];");
  cases.push_back(
      {.name = "symbol",
       .toml = absl::StrCat(InAndOut(), taps, symbol, "[[launch]]\nentry = \"step\"\n", geometry,
                            "arguments = [\"x\", \"y\", \"N\"]\n[[reference.launch]]\n", "entry = \"expected\"\n",
                            geometry, "arguments = [\"x\", \"taps\", \"y\", \"N\"]\n"),
       .kernel = "namespace own { __constant__ float taps[8]; }\n" + read_taps,
       .reference = "extern \"C\" __global__ void expected(const float* x, const float* taps, float* y, "
                    "int n) {\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (i < n) y[i] = x[i] * taps[i % 8];\n}\n",
       .whole_trial = true});
  cases.push_back(cases.back());
  cases.back().name = "symbol_is_overwritten";
  cases.back().kernel =
      "namespace own { __device__ float taps[8]; }\n" +
      Each("const float* x, float* y, int n", "y[i] = x[i] * own::taps[i % 8]; if (n < 0 || i == 0) own::taps[7] = 9;");
  cases.back().failure = "changed the variable own::taps";
  cases.back().whole_trial = false;
  cases.push_back(cases.back());
  cases.back().name = "symbol_of_another_size";
  cases.back().kernel = "namespace own { __constant__ float taps[9]; }\n" + read_taps;
  cases.back().failure = "the variable has 36 bytes, the tensor taps 32";
  for (const int rounds : {3, 4}) {
    cases.push_back(
        {.name = absl::StrCat("loop_of_", rounds),
         .toml = absl::StrCat(
             Tensor("x", "i32", "role = \"inout\"\nfill = { integers = [0, 9] }"),
             Tensor("t", "i32", "role = \"scratch\""), "[[launch]]\nloop = \"round\"\nrepeat = ", rounds,
             "\nindex = \"pass\"\n", "swap = [\"x\", \"t\"]\nentry = \"step\"\n", geometry,
             "arguments = [\"x\", \"t\", \"N\", \"pass\"]\n", "[[launch]]\nloop = \"round\"\nentry = \"twice\"\n",
             geometry, "arguments = [\"t\", \"N\"]\n[[reference.launch]]\nentry = \"expected\"\n", geometry,
             "arguments = [\"x\", \"N\"]\n"),
         .kernel = absl::StrCat(Each("const int* x, int* t, int n, int pass", "t[i] = x[i] + pass;"),
                                "extern \"C\" __global__ void twice(int* t, int n) {\n  const int i = blockIdx.x * "
                                "blockDim.x + threadIdx.x;\n  if (i < n) t[i] *= 2;\n}\n"),
         .reference = absl::StrCat("extern \"C\" __global__ void expected(int* x, int n) {\n  const int i = ",
                                   "blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n",
                                   "  for (int pass = 0; pass < ", rounds, "; ++pass) x[i] = 2 * (x[i] + pass);\n}\n"),
         .whole_trial = true});
  }
  cases.push_back({.name = "in_place_declared_out_of_place",
                   .toml = absl::StrCat(InAndOut(), Launches("\"x\", \"y\", \"N\"")),
                   .kernel = Each("float* x, float* y, int n", "y[i] = 3 * x[i]; x[i] = 0;"),
                   .reference = kScale,
                   .failure = "has role = \"inout\""});
  cases.push_back({.name = "indices_beyond_the_table",
                   .toml = absl::StrCat(Tensor("x", "i32", "fill = { integers = [0, \"N + 200\"] }"),
                                        Tensor("table", "f32", "range = [-4, 4]"), Output("f32"),
                                        Launches("\"x\", \"table\", \"y\", \"N\"")),
                   .kernel = Each("const int* x, const float* table, float* y, int n", "y[i] = 2 * table[x[i]];"),
                   .failure = "Do all indices exist"});
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (std::vector<Case> some : {Types(), Fills(), LaunchForms()}) all.insert(all.end(), some.begin(), some.end());
  return all;
}

class Folder {
 public:
  explicit Folder(const Case& each) {
    std::string name = (std::filesystem::temp_directory_path() / "pawl-plans-XXXXXX").string();
    path_ = mkdtemp(name.data());
    Write("kernel.toml", kHead + each.toml);
    Write("kernel.cu", each.kernel);
    Write("reference.cu", each.reference.empty() ? absl::StrReplaceAll(each.kernel, {{"void step(", "void expected("}})
                                                 : each.reference);
    Write("setup.cu", R"(
extern "C" __global__ void pack(const float* w, float* packed, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) packed[i] = 2 * w[i] + 1;
}
)");
    std::vector<float> data(20000);
    for (size_t i = 0; i < data.size(); ++i) data[i] = 1 + 0.001f * static_cast<float>(i % 977);
    Write("data.bin", {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float)});
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  v1::Bundle Read() const {
    BundleReading reading = ReadBundle(path_);
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    return reading.bundle;
  }

 private:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

  std::filesystem::path path_;
};

class Plans : public testing::TestWithParam<Case> {};

// Also without a GPU: what is not read as it stands would be skipped there and found late.
TEST_P(Plans, AreReadWithoutProblems) {
  const v1::Bundle bundle = Folder(GetParam()).Read();
  EXPECT_EQ(bundle.name(), "case");
}

Builder* SharedBuilder() {
  static const std::unique_ptr<Builder> builder = [] {
    absl::StatusOr<std::unique_ptr<Builder>> created = Builder::Create({.allow_unsandboxed = true});
    return created.ok() ? *std::move(created) : nullptr;
  }();
  return builder.get();
}

// Without a GPU too: the code compiles, and its parameters are what the launches pass.
TEST_P(Plans, AreBuilt) {
  if (SharedBuilder() == nullptr) GTEST_SKIP() << "needs NVRTC or nvcc";
  const v1::Bundle bundle = Folder(GetParam()).Read();
  v1::GpuInfo gpu = TypicalGpu();
  gpu.set_compute_major(9);
  const absl::StatusOr<BuiltVariant> built =
      BuildVariant(*SharedBuilder(), bundle, StartVariant(bundle), {bundle.sizes().begin(), bundle.sizes().end()}, gpu);
  ASSERT_TRUE(built.ok()) << built.status();
  if (built->failure) {
    ASSERT_FALSE(GetParam().failure.empty()) << built->failure->message();
    EXPECT_THAT(built->failure->message(), HasSubstr(GetParam().failure));
  }
  ReferenceCache cache;
  const absl::StatusOr<BuiltSize> reference = BuildReference(*SharedBuilder(), bundle, bundle.sizes(0), gpu, &cache);
  EXPECT_TRUE(reference.ok()) << reference.status();
}

TEST_P(Plans, AreValidated) {
  PAWL_NEEDS_GPU();
  const v1::Bundle bundle = Folder(GetParam()).Read();
  const absl::StatusOr<StartVariantRun> run = RunStartVariant(SharedDevice()->cuda(), bundle);
  const std::string message = !run.ok()      ? std::string(run.status().message())
                              : run->failure ? run->failure->message()
                                             : "";
  if (GetParam().failure.empty()) {
    EXPECT_EQ(message, "");
  } else {
    EXPECT_THAT(message, HasSubstr(GetParam().failure));
  }
}

TEST_P(Plans, AreTimedSanitizedAndProfiled) {
  PAWL_NEEDS_GPU();
  if (!GetParam().whole_trial) GTEST_SKIP() << "validated only";
  const v1::Bundle bundle = Folder(GetParam()).Read();
  const absl::StatusOr<v1::TrialResult> result = RunAlone(bundle, StartVariant(bundle));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->has_failure()) << result->failure().message();
  EXPECT_GT(result->warm_us(), 0);
  EXPECT_GT(result->cold_us(), 0);
  // Pair by pair: both sides of one have the same placement, by which times differ more than from side to side.
  ASSERT_FALSE(result->pairs().empty());
  double mean = 0;
  for (const v1::PairSample& pair : result->pairs()) mean += pair.log_ratio() / result->pairs_size();
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_EQ(result->profiled(), SharedDevice()->device().counters()) << result->notes();
  EXPECT_EQ(result->evidence().launches_size(), bundle.launches_size());
}

INSTANTIATE_TEST_SUITE_P(All, Plans, testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// In two launches with scratch between them; an edit does it in one, with other scratch and one more variable.
TEST(Edits, MayHaveOtherScratchLaunchesAndVariablesThanTheirParent) {
  const std::string two =
      "[[launch]]\nentry = \"first\"\ngrid = [\"ceil_div(N, 256)\"]\nblock = [\"256\"]\n"
      "arguments = [\"x\", \"between\", \"N\"]\n\n"
      "[[launch]]\nentry = \"second\"\ngrid = [\"ceil_div(N, 256)\"]\nblock = [\"256\"]\n"
      "arguments = [\"between\", \"y\", \"N\"]\n";
  const std::string reference =
      "[[reference.launch]]\nentry = \"expected\"\ngrid = [\"ceil_div(N, 256)\"]\n"
      "block = [256]\narguments = [\"x\", \"y\", \"N\"]\n";
  const std::string each = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  ";
  Case made;
  made.toml = absl::StrCat(Tensor("x", "f32", ""), Tensor("between", "f32", "role = \"scratch\""), Output("f32"), two,
                           reference);
  made.kernel =
      absl::StrCat("extern \"C\" __global__ void first(const float* x, float* t, int n) {\n", each,
                   "t[i] = x[i] + 1;\n}\nextern \"C\" __global__ void second(const float* t, float* y, int n) {\n",
                   each, "y[i] = 2 * t[i];\n}\n");
  made.reference = absl::StrCat("extern \"C\" __global__ void expected(const float* x, float* y, int n) {\n", each,
                                "y[i] = 2 * (x[i] + 1);\n}\n");
  const v1::Bundle bundle = Folder(made).Read();
  const ImplementationState parent = {"", StartVariant(bundle)};

  v1::Bundle edited = bundle;
  edited.mutable_source()->set_text(
      absl::StrCat("extern \"C\" __global__ void both(const float* x, int* seen, float* y, int n) {\n", each,
                   "seen[i] = i;\n  y[i] = 2 * (x[i] + 1);\n}\n"));
  const std::string toml = absl::StrCat(
      "[[variable]]\nname = \"UNUSED\"\nvalues = [0, 1]\nstart = 0\n"
      "[[variable]]\nname = \"BLOCK\"\nvalues = [128, 256]\nstart = 128\n",
      Tensor("seen", "i32", "role = \"scratch\"\nalign = 512"),
      "[[launch]]\nentry = \"both\"\ngrid = [\"ceil_div(N, BLOCK)\"]\nblock = [\"BLOCK\"]\n"
      "arguments = [\"x\", \"seen\", \"y\", \"N\"]\n");
  const absl::StatusOr<v1::Variant> variant = ReadEditedToml(toml, bundle, parent.variant, &edited);
  ASSERT_TRUE(variant.ok()) << variant.status();
  const std::string lines_of_code =
      absl::StrCat(std::count(edited.source().text().begin(), edited.source().text().end(), '\n'));
  const std::string written = ImplementationToml(edited);
  const ImplementationState candidate = {
      absl::StrCat("==== kernel.cu, ", lines_of_code, " lines ====\n", edited.source().text(), "==== kernel.toml, ",
                   std::count(written.begin(), written.end(), '\n'), " lines ====\n", written),
      *variant};
  v1::Bundle read = bundle;
  ASSERT_TRUE(SetImplementation(candidate.text, &read).ok());
  PAWL_NEEDS_GPU();
  for (const bool forwards : {true, false}) {
    const absl::StatusOr<v1::TrialResult> result =
        forwards ? RunAgainst(bundle, candidate, parent) : RunAgainst(bundle, parent, candidate);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->has_failure()) << result->failure().message();
    EXPECT_GT(result->pairs_size(), 0);
    EXPECT_EQ(result->warm_us() < result->parent_warm_us(), forwards) << "one launch is faster than two";
  }
}

}  // namespace
}  // namespace pawl
