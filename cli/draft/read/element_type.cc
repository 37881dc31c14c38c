#include "cli/draft/read/element_type.h"

#include <cctype>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace pawl {

std::optional<ElementType> ElementTypeOf(const std::string& cpp) {
  static const auto& types = *new std::map<std::string, ElementType>{
      {"float", {"f32"}},
      {"double", {"f64"}},
      {"int", {"i32"}},
      {"unsigned int", {"u32"}},
      {"unsigned", {"u32"}},
      {"long", {"i64"}},
      {"long long", {"i64"}},
      {"unsigned long", {"u64"}},
      {"unsigned long long", {"u64"}},
      {"short", {"i16"}},
      {"unsigned short", {"u16"}},
      {"char", {"i8"}},
      {"signed char", {"i8"}},
      {"unsigned char", {"u8"}},
      {"bool", {"bool"}},
      {"void", {"u8"}},
      {"int64_t", {"i64"}},
      {"int32_t", {"i32"}},
      {"int8_t", {"i8"}},
      {"uint8_t", {"u8"}},
      {"uint16_t", {"u16"}},
      {"uint32_t", {"u32"}},
      {"uint64_t", {"u64"}},
      {"size_t", {"u64"}},
      {"half", {"f16"}},
      {"__half", {"f16"}},
      {"__half2", {"f16", 2}},
      {"half2", {"f16", 2}},
      {"c10::Half", {"f16"}},
      {"at::Half", {"f16"}},
      {"__nv_bfloat16", {"bf16"}},
      {"nv_bfloat16", {"bf16"}},
      {"__nv_bfloat162", {"bf16", 2}},
      {"c10::BFloat16", {"bf16"}},
      {"at::BFloat16", {"bf16"}},
      {"__nv_fp8_e4m3", {"f8e4m3"}},
      {"__nv_fp8x2_e4m3", {"f8e4m3", 2}},
      {"__nv_fp8x4_e4m3", {"f8e4m3", 4}},
      {"__nv_fp8_e5m2", {"f8e5m2"}},
      {"__nv_fp8x2_e5m2", {"f8e5m2", 2}},
      {"__nv_fp8x4_e5m2", {"f8e5m2", 4}},
      {"c10::Float8_e4m3fn", {"f8e4m3"}},
      {"c10::Float8_e5m2", {"f8e5m2"}},
      {"c10::complex<float>", {"f32", 2}},
      {"thrust::complex<float>", {"f32", 2}},
      {"c10::complex<double>", {"f64", 2}},
  };
  if (const auto found = types.find(cpp); found != types.end()) return found->second;
  // float4, uchar3, longlong2
  static const auto& vectors = *new std::map<std::string, std::string>{
      {"char", "i8"},   {"uchar", "u8"},   {"short", "i16"},    {"ushort", "u16"},
      {"int", "i32"},   {"uint", "u32"},   {"long", "i64"},     {"ulong", "u64"},
      {"float", "f32"}, {"double", "f64"}, {"longlong", "i64"}, {"ulonglong", "u64"}};
  if (cpp.empty() || cpp.back() < '1' || cpp.back() > '4') return std::nullopt;
  const auto found = vectors.find(cpp.substr(0, cpp.size() - 1));
  if (found == vectors.end()) return std::nullopt;
  return ElementType{found->second, cpp.back() - '0'};
}

bool IsWholeType(const std::string& type) { return !type.empty() && (type[0] == 'i' || type[0] == 'u'); }

int BytesOfType(const std::string& type) {
  int bits = 0;
  if (type == "bool" || absl::StartsWith(type, "f8")) return 1;
  const size_t digits = type.find_first_of("0123456789");
  return digits != std::string::npos && absl::SimpleAtoi(type.substr(digits), &bits) ? bits / 8 : 4;
}

}  // namespace pawl
