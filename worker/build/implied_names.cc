#include "worker/build/implied_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/source/cpp_tokens.h"

namespace pawl {
namespace {

// Typedefs of the global namespace: those of <sys/types.h>, and of <cstdint> as libcu++ has them for NVRTC.
constexpr std::pair<const char*, const char*> kTypedefs[] = {
    {"uint", "unsigned int"},           {"ushort", "unsigned short"},       {"ulong", "unsigned long"},
    {"int8_t", "signed char"},          {"uint8_t", "unsigned char"},       {"int16_t", "signed short"},
    {"uint16_t", "unsigned short"},     {"int32_t", "signed int"},          {"uint32_t", "unsigned int"},
    {"int64_t", "signed long long"},    {"uint64_t", "unsigned long long"}, {"intptr_t", "signed long long"},
    {"uintptr_t", "unsigned long long"}};

// Names of std by the header that declares them.
constexpr std::pair<const char*, const char*> kStdNames[] = {
    {"algorithm", "min max clamp"},
    {"array", "array"},
    {"bit", "bit_cast popcount countl_zero countr_zero has_single_bit bit_ceil bit_floor bit_width"},
    {"cmath",
     "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor "
     "fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf "
     "nearbyint nextafter pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc isfinite "
     "isinf isnan signbit"},
    {"complex", "complex"},
    {"cstddef", "size_t ptrdiff_t nullptr_t byte max_align_t"},
    {"cstdint",
     "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t"},
    {"cstring", "memcpy memset memmove memcmp"},
    {"functional",
     "plus minus multiplies divides modulus negate equal_to not_equal_to greater less greater_equal less_equal "
     "logical_and logical_or logical_not bit_and bit_or bit_xor"},
    {"initializer_list", "initializer_list"},
    {"limits", "numeric_limits"},
    {"optional", "optional nullopt nullopt_t make_optional"},
    {"tuple", "tuple make_tuple tie forward_as_tuple tuple_cat tuple_size tuple_element tuple_element_t ignore apply"},
    {"type_traits",
     "integral_constant bool_constant true_type false_type conditional conditional_t enable_if enable_if_t void_t "
     "decay decay_t common_type common_type_t underlying_type underlying_type_t remove_cv remove_cv_t remove_const "
     "remove_const_t remove_volatile remove_volatile_t remove_reference remove_reference_t remove_cvref "
     "remove_cvref_t remove_pointer remove_pointer_t remove_extent remove_extent_t add_const add_const_t add_pointer "
     "add_pointer_t make_signed make_signed_t make_unsigned make_unsigned_t aligned_storage aligned_storage_t "
     "alignment_of alignment_of_v conjunction conjunction_v disjunction disjunction_v negation negation_v extent "
     "extent_v rank rank_v invoke_result invoke_result_t type_identity type_identity_t is_same is_same_v is_integral "
     "is_integral_v is_floating_point is_floating_point_v is_arithmetic is_arithmetic_v is_signed is_signed_v "
     "is_unsigned is_unsigned_v is_pointer is_pointer_v is_array is_array_v is_class is_class_v is_enum is_enum_v "
     "is_void is_void_v is_const is_const_v is_reference is_reference_v is_base_of is_base_of_v is_convertible "
     "is_convertible_v is_invocable is_invocable_v is_trivial is_trivial_v is_trivially_copyable "
     "is_trivially_copyable_v is_default_constructible is_default_constructible_v is_constructible "
     "is_constructible_v is_null_pointer is_null_pointer_v is_scalar is_scalar_v is_empty is_empty_v"},
    {"utility",
     "pair make_pair swap move forward exchange declval as_const in_place integer_sequence index_sequence "
     "make_integer_sequence make_index_sequence index_sequence_for get"}};

// NVRTC knows these without std.
constexpr const char* kAlsoGlobal[] = {"algorithm", "cmath", "cstddef", "cstring", "cstdint"};

constexpr std::pair<const char*, const char*> kMacros[] = {
    {"cfloat", "FLT_MAX FLT_MIN FLT_EPSILON FLT_DIG FLT_MANT_DIG DBL_MAX DBL_MIN DBL_EPSILON DBL_DIG DBL_MANT_DIG"},
    {"climits",
     "CHAR_BIT CHAR_MIN CHAR_MAX SCHAR_MIN SCHAR_MAX UCHAR_MAX SHRT_MIN SHRT_MAX USHRT_MAX INT_MIN INT_MAX UINT_MAX "
     "LONG_MIN LONG_MAX ULONG_MAX LLONG_MIN LLONG_MAX ULLONG_MAX"},
    {"cmath",
     "INFINITY NAN HUGE_VAL HUGE_VALF M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI "
     "M_SQRT2 M_SQRT1_2"},
    {"cstdint",
     "INT8_MIN INT8_MAX UINT8_MAX INT16_MIN INT16_MAX UINT16_MAX INT32_MIN INT32_MAX UINT32_MAX INT64_MIN INT64_MAX "
     "UINT64_MAX"}};

using Words = std::set<std::string_view>;
using HeaderOf = std::map<std::string_view, std::string_view>;

template <size_t N>
HeaderOf Table(const std::pair<const char*, const char*> (&lists)[N]) {
  HeaderOf table;
  for (const auto& [header, names] : lists) {
    for (const absl::string_view name : absl::StrSplit(names, ' ')) {
      table[std::string_view(name.data(), name.size())] = header;
    }
  }
  return table;
}

// The words of the texts, in code and in what macros stand for.
struct Used {
  Words words;     // any
  Words of_std;    // behind std::
  Words declared;  // by a typedef, an alias, a type or a macro of the texts' own
  bool using_std = false;
};

void Look(const std::vector<CppToken>& tokens, size_t begin, Used* used) {
  const auto is = [&](size_t i, std::string_view text) { return i < tokens.size() && tokens[i].Is(text); };
  bool in_typedef = false;
  for (size_t i = begin; i < tokens.size(); ++i) {
    const CppToken& token = tokens[i];
    if (token.Is(";")) in_typedef = false;
    if (!token.IsWord()) continue;
    if (token.Is("typedef")) in_typedef = true;
    used->words.insert(token.text);
    if (token.Is("using") && is(i + 1, "namespace") && is(i + 2, "std")) used->using_std = true;
    if (token.Is("std") && is(i + 1, "::") && i + 2 < tokens.size()) used->of_std.insert(tokens[i + 2].text);
    const bool named = i > begin && (is(i - 1, "struct") || is(i - 1, "class") || is(i - 1, "union") ||
                                     is(i - 1, "enum") || is(i - 1, "typename"));
    const bool aliased = i > begin && is(i - 1, "using") && is(i + 1, "=");
    if (named || aliased || (in_typedef && (is(i + 1, ";") || is(i + 1, ",")))) used->declared.insert(token.text);
  }
}

Used UsedBy(const std::vector<std::string_view>& texts) {
  Used used;
  for (const std::string_view text : texts) {
    const std::vector<CppToken> tokens = CppTokens(text);
    Look(tokens, 0, &used);
    for (const CppToken& token : tokens) {
      if (token.kind != CppToken::Kind::kDirective) continue;
      const std::vector<CppToken> parts = DirectiveTokens(token);
      if (parts.size() < 3 || !parts[1].Is("define")) continue;
      used.declared.insert(parts[2].text);
      Look(parts, 3, &used);
    }
  }
  return used;
}

}  // namespace

bool MentionsStd(const std::vector<std::string_view>& texts) { return UsedBy(texts).words.contains("std"); }

std::string ImpliedNames(const std::vector<std::string_view>& texts, const std::vector<StandardHeader>& headers) {
  static const auto& of_std = *new HeaderOf(Table(kStdNames));
  static const auto& macros = *new HeaderOf(Table(kMacros));
  const Used used = UsedBy(texts);
  const auto own = [&](std::string_view name) { return used.declared.contains(name); };
  Words included;
  for (const std::string_view name : used.of_std) {
    if (const auto found = of_std.find(name); found != of_std.end()) included.insert(found->second);
  }
  for (const std::string_view name : used.words) {
    if (own(name)) continue;
    if (const auto found = macros.find(name); found != macros.end()) included.insert(found->second);
    const auto found = used.using_std ? of_std.find(name) : of_std.end();
    if (found == of_std.end()) continue;
    const bool global =
        std::find(std::begin(kAlsoGlobal), std::end(kAlsoGlobal), found->second) != std::end(kAlsoGlobal);
    if (!global) included.insert(found->second);
  }
  std::string text;
  for (const auto& [name, type] : kTypedefs) {
    if (used.words.contains(name) && !own(name)) absl::StrAppend(&text, "typedef ", type, " ", name, ";\n");
  }
  for (const StandardHeader& header : headers) {
    if (included.contains(header.name)) absl::StrAppend(&text, "#include <", header.name, ">\n");
  }
  return text;
}

}  // namespace pawl
