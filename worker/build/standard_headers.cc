#include "worker/build/standard_headers.h"

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "worker/host/header_libraries.h"

namespace pawl {
namespace {

// Names that a source uses as std::x are looked for in libcu++ as well; what is declared in std itself comes first.
// Not every header of libcu++ opens its namespace (<climits>).
constexpr char kStd[] = "namespace cuda { namespace std {} }\nnamespace std { using namespace ::cuda::std; }\n";

// Functions that NVRTC knows without a header, for every type of float.
constexpr const char* kMath[] = {
    "abs",       "acos",      "acosh", "asin",      "asinh",  "atan",  "atan2",    "atanh",   "cbrt",   "ceil",
    "copysign",  "cos",       "cosh",  "erf",       "erfc",   "exp",   "exp2",     "expm1",   "fabs",   "fdim",
    "floor",     "fma",       "fmax",  "fmin",      "fmod",   "frexp", "hypot",    "ilogb",   "ldexp",  "lgamma",
    "llrint",    "llround",   "log",   "log10",     "log1p",  "log2",  "logb",     "lrint",   "lround", "modf",
    "nearbyint", "nextafter", "pow",   "remainder", "remquo", "rint",  "round",    "scalbln", "scalbn", "sin",
    "sinh",      "sqrt",      "tan",   "tanh",      "tgamma", "trunc", "isfinite", "isinf",   "isnan",  "signbit"};

constexpr std::pair<const char*, const char*> kConstants[] = {
    {"M_E", "2.7182818284590452354"},         {"M_LOG2E", "1.4426950408889634074"},
    {"M_LOG10E", "0.43429448190325182765"},   {"M_LN2", "0.69314718055994530942"},
    {"M_LN10", "2.30258509299404568402"},     {"M_PI", "3.14159265358979323846"},
    {"M_PI_2", "1.57079632679489661923"},     {"M_PI_4", "0.78539816339744830962"},
    {"M_1_PI", "0.31830988618379067154"},     {"M_2_PI", "0.63661977236758134308"},
    {"M_2_SQRTPI", "1.12837916709551257390"}, {"M_SQRT2", "1.41421356237309504880"},
    {"M_SQRT1_2", "0.70710678118654752440"}};

// libcu++ has them as well, and takes a second to compile.
std::string MathText() {
  std::string text =
      "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
      "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
      "#ifndef HUGE_VALF\n#define HUGE_VALF __int_as_float(0x7f800000)\n#endif\n"
      "#ifndef HUGE_VAL\n#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)\n#endif\n";
  for (const auto& [name, value] : kConstants) {
    absl::StrAppend(&text, "#ifndef ", name, "\n#define ", name, " ", value, "\n#endif\n");
  }
  text += "namespace std {\n";
  for (const char* name : kMath) absl::StrAppend(&text, "using ::", name, ";\n");
  return text + "}\n";
}

constexpr char kAlgorithm[] =
    "namespace std {\n"
    "template <typename T> __host__ __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; "
    "}\n"
    "template <typename T> __host__ __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; "
    "}\n"
    "template <typename T> __host__ __device__ constexpr const T& clamp(const T& v, const T& low, const T& high) {\n"
    "  return v < low ? low : high < v ? high : v;\n}\n}\n";

constexpr char kFloatLimits[] =
    "#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define DBL_MANT_DIG 53\n#define FLT_DIG 6\n#define DBL_DIG 15\n"
    "#define FLT_MAX 3.402823466e+38F\n#define FLT_MIN 1.175494351e-38F\n#define FLT_EPSILON 1.192092896e-07F\n"
    "#define DBL_MAX 1.7976931348623157e+308\n#define DBL_MIN 2.2250738585072014e-308\n"
    "#define DBL_EPSILON 2.2204460492503131e-16\n";

// The driver's interface has host functions, which NVRTC refuses; device code can use these of its types.
constexpr char kDriver[] =
    "typedef unsigned int cuuint32_t;\ntypedef unsigned long long cuuint64_t;\n"
    "typedef struct alignas(64) CUtensorMap_st { cuuint64_t opaque[16]; } CUtensorMap;\n";

// Those that declare nothing but names of std. They take a second to compile.
const std::set<std::string>& OnlyStd() {
  static const auto& names = *new std::set<std::string>{"array",    "bit",   "complex",     "functional",
                                                        "optional", "tuple", "type_traits", "utility"};
  return names;
}

std::vector<StandardHeader> MakeHeaders(const std::string& toolkit_include) {
  std::vector<StandardHeader> headers;
  const auto add = [&](const std::string& name, const std::string& text) {
    headers.push_back({name, absl::StrCat("#pragma once\n", text), false});
  };
  for (const char* name : {"cmath", "math.h"}) add(name, MathText());
  for (const char* name : {"cfloat", "float.h"}) add(name, kFloatLimits);
  for (const char* name : {"cstdio", "stdio.h"}) add(name, "");  // printf is known without
  for (const char* name : {"cstdlib", "stdlib.h"}) add(name, "namespace std { using ::abs; }\n");  // and malloc
  add("stdbool.h", "");
  add("algorithm", kAlgorithm);
  add("cuda.h", kDriver);
  const std::map<std::string, std::string> of_cuda = {{"array", "array"},
                                                      {"assert.h", "cassert"},
                                                      {"bit", "bit"},
                                                      {"cassert", "cassert"},
                                                      {"climits", "climits"},
                                                      {"complex", "complex"},
                                                      {"cstddef", "cstddef"},
                                                      {"cstdint", "cstdint"},
                                                      {"cstring", "cstring"},
                                                      {"functional", "functional"},
                                                      {"initializer_list", "initializer_list"},
                                                      {"limits", "limits"},
                                                      {"limits.h", "climits"},
                                                      {"optional", "optional"},
                                                      {"stddef.h", "cstddef"},
                                                      {"stdint.h", "cstdint"},
                                                      {"string.h", "cstring"},
                                                      {"tuple", "tuple"},
                                                      {"type_traits", "type_traits"},
                                                      {"utility", "utility"}};
  for (const auto& [name, own] : of_cuda) {
    for (const std::string& folder : ToolkitFolders(toolkit_include)) {
      std::error_code error;
      if (!std::filesystem::exists(std::filesystem::path(folder) / "cuda/std" / own, error)) continue;
      add(name, absl::StrCat("#include <cuda/std/", own, ">\n", kStd));
      headers.back().only_std = OnlyStd().contains(name);
      break;
    }
  }
  return headers;
}

}  // namespace

const std::vector<StandardHeader>& StandardHeaders(const std::string& toolkit_include) {
  static const auto& headers = *new std::vector<StandardHeader>(MakeHeaders(toolkit_include));
  return headers;
}

}  // namespace pawl
