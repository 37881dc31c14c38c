#include "kernels/source/host_code.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "kernels/source/cpp_tokens.h"

namespace pawl {
namespace {

using Words = std::set<std::string_view>;

const Words& DeviceMarkers() {
  static const auto& markers =
      *new Words{"__global__",       "__device__",           "__constant__",   "__shared__",          "__managed__",
                 "C10_DEVICE",       "C10_HOST_DEVICE",      "CUTLASS_DEVICE", "CUTLASS_HOST_DEVICE", "CUTE_DEVICE",
                 "CUTE_HOST_DEVICE", "CUB_RUNTIME_FUNCTION", "_CCCL_DEVICE",   "_CCCL_HOST_DEVICE"};
  return markers;
}

// Names that no device code uses: a type or a constant that has one of them is the host's.
const Words& HostNames() {
  static const auto& names =
      *new Words{"vector", "string",   "map",        "unordered_map", "unique_ptr",       "shared_ptr",
                 "mutex",  "function", "ostream",    "ifstream",      "ofstream",         "thread",
                 "chrono", "Tensor",   "TensorList", "ScalarType",    "OptionalTensorRef"};
  return names;
}

// Host libraries: their headers are of no use to device code, and NVRTC can't take them.
bool IsHostLibrary(std::string_view path) {
  for (const char* folder :
       {"torch/", "ATen/", "c10/", "caffe2/", "pybind11/", "THC/", "boost/", "nvtx3/", "gtest/", "gflags/", "glog/",
        "absl/", "fmt/", "sys/", "thrust/host", "thrust/device_vector", "opencv2/", "hip/"}) {
    if (path.starts_with(folder)) return true;
  }
  for (const char* name : {"Python.h", "cublas", "cudnn", "cusparse", "cusolver", "cufft", "curand.h", "nccl.h",
                           "mpi.h", "omp.h", "nvToolsExt.h", "cuda_profiler_api.h", "nvrtc.h", "unistd.h", "pthread.h",
                           "getopt.h", "dlfcn.h", "helper_", "nvml.h"}) {
    if (path.starts_with(name)) return true;
  }
  return false;
}

// Of C and C++; what a build by NVRTC has of them (worker/build/standard_headers.h) is not among them.
const Words& HostHeaders() {
  static const auto& headers = *new Words{"any",           "atomic",        "bitset",     "cctype",
                                          "cerrno",        "chrono",        "codecvt",    "condition_variable",
                                          "csignal",       "cstdarg",       "ctime",      "cwchar",
                                          "deque",         "exception",     "filesystem", "forward_list",
                                          "fstream",       "future",        "iomanip",    "ios",
                                          "iosfwd",        "iostream",      "istream",    "iterator",
                                          "list",          "locale",        "map",        "memory",
                                          "mutex",         "new",           "numeric",    "ostream",
                                          "queue",         "random",        "ratio",      "regex",
                                          "set",           "shared_mutex",  "span",       "sstream",
                                          "stack",         "stdexcept",     "string",     "string_view",
                                          "system_error",  "thread",        "typeindex",  "typeinfo",
                                          "unordered_map", "unordered_set", "valarray",   "variant",
                                          "vector",        "ctype.h",       "errno.h",    "fcntl.h",
                                          "memory.h",      "signal.h",      "stdarg.h",   "strings.h",
                                          "time.h",        "inttypes.h",    "cinttypes",  "cxxabi.h",
                                          "malloc.h"};
  return headers;
}

constexpr char kTorch[] =
    "#pragma once\n"
    "#include <cuda_bf16.h>\n"
    "#include <cuda_fp16.h>\n"
    "#include <cstdint>\n"
    "#include <cmath>\n"
    "#include <limits.h>\n"
    R"(#define C10_HOST __host__
#define C10_DEVICE __device__
#define C10_HOST_DEVICE __host__ __device__
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_WARP_SIZE 32
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type) \
  for (index_type i = static_cast<index_type>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<index_type>(gridDim.x) * blockDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#define CUDA_KERNEL_ASSERT(condition)
namespace c10 {
using Half = __half;
using BFloat16 = __nv_bfloat16;
}
namespace at {
using Half = __half;
using BFloat16 = __nv_bfloat16;
template <typename T, bool is_cuda> struct AccumulateType { using type = float; };
template <bool is_cuda> struct AccumulateType<double, is_cuda> { using type = double; };
template <bool is_cuda> struct AccumulateType<int, is_cuda> { using type = long; };
template <bool is_cuda> struct AccumulateType<long, is_cuda> { using type = long; };
template <typename T, bool is_cuda = true> using acc_type = typename AccumulateType<T, is_cuda>::type;
template <typename T> struct OpMathType { using type = T; };
template <> struct OpMathType<__half> { using type = float; };
template <> struct OpMathType<__nv_bfloat16> { using type = float; };
template <typename T> using opmath_type = typename OpMathType<T>::type;
}
namespace torch { using namespace at; }
)";

bool IsTorch(std::string_view path) {
  return path.starts_with("torch/") || path.starts_with("ATen/") || path.starts_with("c10/");
}

// The path of an #include; empty: another directive, or one by way of a macro.
std::string IncludedPath(const CppToken& directive) {
  const std::vector<CppToken> tokens = DirectiveTokens(directive);
  if (tokens.size() < 3 || !tokens[1].Is("include")) return "";
  if (tokens[2].kind == CppToken::Kind::kString && tokens[2].text.size() > 2) {
    return std::string(tokens[2].text.substr(1, tokens[2].text.size() - 2));
  }
  const size_t open = directive.text.find('<'), close = directive.text.find('>');
  if (!tokens[2].Is("<") || close == std::string_view::npos) return "";
  return std::string(directive.text.substr(open + 1, close - open - 1));
}

class Blanking {
 public:
  Blanking(std::string_view text, v1::Compiler compiler, const std::vector<std::string>& device_macros)
      : text_(text), nvrtc_(compiler != v1::COMPILER_NVCC), tokens_(CppTokens(text)), macros_(DeviceMacros(text)) {
    macros_.insert(macros_.end(), device_macros.begin(), device_macros.end());
    for (const std::string& macro : macros_) markers_.insert(macro);
  }

  std::string Run() {
    const std::vector<bool> first = InFirstBranch(tokens_);
    for (const CppToken& token : tokens_) {
      if (token.kind == CppToken::Kind::kDirective) Include(token);
    }
    for (size_t at = 0; at < tokens_.size();) at = Declaration(at);
    return std::move(text_);
  }

 private:
  const CppToken& At(size_t i) const { return tokens_[i]; }
  bool Is(size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].Is(text); }

  void Blank(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (text_[i] != '\n' && text_[i] != '\r') text_[i] = ' ';
    }
  }

  // Directives stay: an #endif among them may belong to an #if before them.
  void BlankTokens(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (At(i).kind != CppToken::Kind::kDirective) Blank(At(i).offset, At(i).offset + At(i).text.size());
    }
  }

  void Include(const CppToken& directive) {
    const std::string path = IncludedPath(directive);
    if (path.empty()) return;
    if (nvrtc_ && IsTorch(path)) return;
    if (IsHostLibrary(path) || (nvrtc_ && HostHeaders().contains(path))) {
      Blank(directive.offset, directive.offset + directive.text.size());
    }
  }

  bool IsMarked(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (At(i).IsWord() && (DeviceMarkers().contains(At(i).text) || markers_.contains(At(i).text))) return true;
    }
    return false;
  }

  bool HasWord(size_t begin, size_t end, const Words& words) const {
    for (size_t i = begin; i < end; ++i) {
      if (At(i).IsWord() && words.contains(At(i).text)) return true;
    }
    return false;
  }

  // Behind `template <...>`, as often as it comes.
  size_t SkipTemplates(size_t at) const {
    while (Is(at, "template") && Is(at + 1, "<")) {
      int depth = 0;
      for (++at; at < tokens_.size(); ++at) {
        if (Is(at, "<")) ++depth;
        if (Is(at, "(")) at = ClosingBracket(tokens_, at);
        if (Is(at, ">") && --depth == 0) break;
      }
      ++at;
    }
    return at;
  }

  // Handles what begins at `at` and answers where the next declaration begins.
  size_t Declaration(size_t at) {
    if (At(at).kind == CppToken::Kind::kDirective || Is(at, "}") || Is(at, ";")) return at + 1;
    const size_t head = SkipTemplates(at);
    if (const size_t open = OpenedScope(head); open != 0) return open + 1;
    if (const size_t end = MacroCall(at); end != 0) {
      if (!IsMarked(at, at + 1)) BlankTokens(at, end);
      return end;
    }
    bool assigned = false;
    size_t call = 0;  // the first ( of a parameter list
    size_t i = head;
    for (; i < tokens_.size(); ++i) {
      if (At(i).kind == CppToken::Kind::kDirective) continue;
      if (Is(i, "=")) assigned = true;
      if (Is(i, ";")) break;
      if (Is(i, "(") || Is(i, "[")) {
        if (Is(i, "(") && call == 0 && !assigned && !IsAttribute(i)) call = i;
        i = ClosingBracket(tokens_, i);
        continue;
      }
      if (Is(i, "{")) {
        const size_t close = ClosingBracket(tokens_, i);
        // A function ends with its body, all else with a ;
        if (call != 0 && !assigned) {
          const size_t end = std::min(close + 1, tokens_.size());
          if (!IsMarked(at, i) && !HasWord(at, i, {"constexpr", "consteval"})) BlankTokens(at, end);
          return end;
        }
        i = close;
      }
    }
    const size_t end = std::min(i + 1, tokens_.size());
    if (IsHostDeclaration(at, head, end, call != 0 && !assigned)) {
      BlankTokens(at, end);
    } else if (IsType(head)) {
      Members(head, end);
    }
    return end;
  }

  bool IsType(size_t at) const { return Is(at, "struct") || Is(at, "class") || Is(at, "union"); }

  // Functions of a type that stays: those that launch kernels or call the runtime are host code.
  void Members(size_t begin, size_t end, int depth = 0) {
    constexpr int kMaxDepth = 16;  // of types in each other
    if (depth > kMaxDepth) return;
    size_t at = begin;
    while (at < end && !Is(at, "{") && !Is(at, ";")) ++at;
    if (!Is(at, "{")) return;
    const size_t close = std::min(ClosingBracket(tokens_, at), end);
    // What launches is made by the host: its constructors may call others that are blanked.
    const bool of_host = begin + 1 < at && CallsHost(tokens_, at, close);
    const std::string_view name = of_host ? At(begin + 1).text : std::string_view();
    for (++at; at < close;) {
      const bool label = Is(at, "public") || Is(at, "private") || Is(at, "protected");
      at = label ? at + 2 : Member(at, close, depth, name);
    }
  }

  // Handles one member and answers where the next begins. `host` is the name of a class that only the host makes.
  size_t Member(size_t at, size_t end, int depth, std::string_view host) {
    const size_t head = SkipTemplates(at);
    bool function = false, makes = false;
    size_t i = head;
    for (; i < end && !Is(i, ";"); ++i) {
      if (Is(i, "(") && !IsAttribute(i)) {
        makes = makes || (!function && i > head && !host.empty() && At(i - 1).text == host);
        function = true;
      }
      if (Is(i, "(") || Is(i, "[")) i = ClosingBracket(tokens_, i);
      if (!Is(i, "{")) continue;
      const size_t close = ClosingBracket(tokens_, i);
      // int n{1}; and the initialisers of a constructor, : n_{n} {
      const bool value =
          i > head && At(i - 1).IsWord() &&
          !(function && (Is(i - 1, "const") || Is(i - 1, "noexcept") || Is(i - 1, "override") || Is(i - 1, "final")));
      if (function && !value) {
        const bool kept = IsMarked(at, i) || HasWord(at, i, {"constexpr", "consteval"});
        if (!kept && (makes || CallsHost(tokens_, i, close))) BlankTokens(at, std::min(close + 1, end));
        return close + 1;
      }
      if (IsType(head)) Members(head, end, depth + 1);
      i = close;
    }
    return i + 1;
  }

  // __attribute__((...)), __launch_bounds__(...), alignas(...): no parameter list.
  bool IsAttribute(size_t open) const {
    static const auto& attributes =
        *new Words{"__attribute__",    "__launch_bounds__", "__align__",   "alignas",        "decltype", "__declspec",
                   "__cluster_dims__", "noexcept",          "__maxnreg__", "__block_size__", "sizeof"};
    return open > 0 && attributes.contains(At(open - 1).text);
  }

  // namespace x { and extern "C" {: the index of the {, and what is inside is judged one by one. 0: neither.
  size_t OpenedScope(size_t at) const {
    if (Is(at, "inline") && Is(at + 1, "namespace")) ++at;
    if (Is(at, "extern") && at + 2 < tokens_.size() && At(at + 1).kind == CppToken::Kind::kString && Is(at + 2, "{")) {
      return at + 2;
    }
    if (!Is(at, "namespace")) return 0;
    while (at < tokens_.size() && !Is(at, "{") && !Is(at, ";") && !Is(at, "=")) ++at;
    return Is(at, "{") ? at : 0;
  }

  // NAME(...) on its own, with or without a ; but without a body: its end. 0: something else.
  size_t MacroCall(size_t at) const {
    static const auto& keywords =
        *new Words{"static_assert", "alignas",  "decltype", "asm",    "__attribute__",   "__launch_bounds__",
                   "__align__",     "explicit", "extern",   "static", "__cluster_dims__"};
    if (!At(at).IsWord() || !Is(at + 1, "(") || keywords.contains(At(at).text)) return 0;
    const size_t close = ClosingBracket(tokens_, at + 1);
    if (close >= tokens_.size() || Is(close + 1, "{")) return 0;
    return Is(close + 1, ";") ? close + 2 : close + 1;
  }

  bool IsHostDeclaration(size_t begin, size_t head, size_t end, bool prototype) const {
    if (head >= end || IsMarked(begin, end)) return false;
    static const auto& kept = *new Words{"static_assert", "using", "typedef", "enum", "template", "namespace"};
    static const auto& types = *new Words{"struct", "class", "union"};
    static const auto& constant = *new Words{"const", "constexpr", "constinit"};
    // An explicit instantiation of a host function.
    if (Is(head, "template")) return true;
    if (types.contains(At(head).text)) return HasWord(head, end, HostNames());
    if (kept.contains(At(head).text))
      return Is(head, "using") || Is(head, "typedef") ? HasWord(head, end, HostNames()) : false;
    if (prototype) return !HasWord(begin, end, {"constexpr"});
    // Device code can't see a variable of the host, only a constant.
    return !HasWord(begin, end, constant) || HasWord(begin, end, HostNames());
  }

  std::string text_;
  bool nvrtc_;
  std::vector<CppToken> tokens_;  // of the text as it was given, which text_ does not own
  std::vector<std::string> macros_;
  Words markers_;
};

}  // namespace

bool CallsHost(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  const auto of_runtime = [](std::string_view text, std::string_view prefix) {
    return text.size() > prefix.size() && text.starts_with(prefix) &&
           std::isupper(static_cast<unsigned char>(text[prefix.size()]));
  };
  for (size_t i = begin; i + 1 < std::min(end, tokens.size()); ++i) {
    const std::string_view text = tokens[i].text;
    const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
    const bool host = of_runtime(text, "cuda") || of_runtime(text, "hip") || has("LaunchKernel") ||
                      has("LaunchCooperative") || has("Malloc");
    if (tokens[i].Is("<<<") || (host && (tokens[i + 1].Is("(") || tokens[i + 1].Is("<")))) return true;
  }
  return false;
}

std::vector<std::string> DeviceMacros(std::string_view text) {
  std::vector<std::string> macros;
  for (const CppToken& token : CppTokens(text)) {
    if (token.kind != CppToken::Kind::kDirective) continue;
    const std::vector<CppToken> tokens = DirectiveTokens(token);
    if (tokens.size() < 4 || !tokens[1].Is("define")) continue;
    const bool marked = std::any_of(tokens.begin() + 3, tokens.end(), [&](const CppToken& word) {
      return DeviceMarkers().contains(word.text) || std::find(macros.begin(), macros.end(), word.text) != macros.end();
    });
    if (marked) macros.emplace_back(tokens[2].text);
  }
  return macros;
}

std::string WithoutHostCode(std::string_view text, v1::Compiler compiler,
                            const std::vector<std::string>& device_macros) {
  return Blanking(text, compiler, device_macros).Run();
}

std::map<std::string, std::string> StandInHeaders(const std::vector<std::string_view>& texts) {
  std::map<std::string, std::string> headers;
  for (const std::string_view text : texts) {
    for (const CppToken& token : CppTokens(text)) {
      if (token.kind != CppToken::Kind::kDirective) continue;
      const std::string path = IncludedPath(token);
      if (!IsTorch(path)) continue;
      // One text under every path, which #pragma once does not see as one file.
      headers[path] = "#include \"pawl_torch_types.h\"\n";
      headers["pawl_torch_types.h"] = kTorch;
    }
  }
  return headers;
}

}  // namespace pawl
