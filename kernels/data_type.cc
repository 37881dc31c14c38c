#include "kernels/data_type.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pawl {
namespace {

// What a floating-point type of up to 32 bits is made of.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // f8e4m3 has none: its largest exponent holds numbers, and all bits set is its one NaN
};

SmallFloat SmallFloatOf(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return {5, 10, true};
    case v1::DATA_TYPE_BF16:
      return {8, 7, true};
    case v1::DATA_TYPE_F8E4M3:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

// Round to nearest, ties to even; what is beyond the largest becomes the largest.
uint32_t EncodedFloat(const SmallFloat& format, double value, double largest) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  const double size = std::min(std::fabs(value), largest);
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), 1 - bias);
  // In units of the last place; a carry into the next exponent comes out right by itself.
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const uint32_t implicit = 1u << format.mantissa_bits;
  if (units < implicit) return sign | units;  // a subnormal number
  return sign | ((static_cast<uint32_t>(exponent + bias - 1) << format.mantissa_bits) + units);
}

double DecodedFloat(const SmallFloat& format, uint32_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponent = bits >> format.mantissa_bits & ((1u << format.exponent_bits) - 1);
  const uint32_t most = (1u << format.exponent_bits) - 1;
  const double sign = bits >> (format.exponent_bits + format.mantissa_bits) & 1 ? -1 : 1;
  if (format.has_infinity && exponent == most) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (!format.has_infinity && exponent == most && mantissa == (1u << format.mantissa_bits) - 1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign *
         std::ldexp(mantissa + (1u << format.mantissa_bits), static_cast<int>(exponent) - bias - format.mantissa_bits);
}

template <typename T>
std::string Bytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

template <typename T>
double At(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return static_cast<double>(value);
}

bool IsUnsigned(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_U8:
    case v1::DATA_TYPE_U16:
    case v1::DATA_TYPE_U32:
    case v1::DATA_TYPE_U64:
    case v1::DATA_TYPE_U4:
      return true;
    default:
      return false;
  }
}

}  // namespace

const std::vector<std::string>& DataTypeNames() {
  static const auto& names =
      *new std::vector<std::string>{"f16", "bf16", "f32", "f64", "i32", "f8e4m3", "f8e5m2", "i8", "u8",
                                    "i16", "u16",  "u32", "i64", "u64", "bool",   "i4",     "u4"};
  return names;
}

std::string DataTypeName(v1::DataType type) {
  const size_t place = static_cast<size_t>(type) - 1;
  return place < DataTypeNames().size() ? DataTypeNames()[place] : "unknown";
}

bool IsFloat(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
    case v1::DATA_TYPE_F32:
    case v1::DATA_TYPE_F64:
    case v1::DATA_TYPE_F8E4M3:
    case v1::DATA_TYPE_F8E5M2:
      return true;
    default:
      return false;
  }
}

bool IsInteger(v1::DataType type) {
  return !IsFloat(type) && type != v1::DATA_TYPE_BOOL && type != v1::DATA_TYPE_UNSPECIFIED;
}

int ElementBytes(v1::DataType type) { return (ElementBits(type) + 7) / 8; }

int64_t BytesOf(v1::DataType type, int64_t elements) {
  const int bits = ElementBits(type);
  return bits < 8 ? (elements * bits + 7) / 8 : elements * (bits / 8);
}

double LargestOf(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return 65504;
    case v1::DATA_TYPE_BF16:
      return 0x1.fep127;
    case v1::DATA_TYPE_F64:
      return std::numeric_limits<double>::max();
    case v1::DATA_TYPE_F8E4M3:
      return 448;
    case v1::DATA_TYPE_F8E5M2:
      return 57344;
    case v1::DATA_TYPE_BOOL:
      return 1;
    case v1::DATA_TYPE_I64:
      return 0x1.fffffffffffffp62;
    case v1::DATA_TYPE_U64:
      return 0x1.fffffffffffffp63;
    default:
      break;
  }
  if (!IsInteger(type)) return std::numeric_limits<float>::max();
  return std::ldexp(1, ElementBits(type) - (IsUnsigned(type) ? 0 : 1)) - 1;
}

double LowestOf(v1::DataType type) {
  if (type == v1::DATA_TYPE_BOOL || IsUnsigned(type)) return 0;
  if (!IsInteger(type)) return -LargestOf(type);
  return -std::ldexp(1, ElementBits(type) - 1);
}

bool Holds(v1::DataType type, double value) {
  return value >= LowestOf(type) && value <= LargestOf(type) && (IsFloat(type) || value == std::floor(value));
}

double RoundedUp(v1::DataType type, double value) {
  if (!IsFloat(type) || type == v1::DATA_TYPE_F64 || value == 0 || !std::isfinite(value)) return value;
  const SmallFloat format = type == v1::DATA_TYPE_F32 ? SmallFloat{8, 23, true} : SmallFloatOf(type);
  const int least_exponent = 2 - (1 << (format.exponent_bits - 1));
  const int unit = std::max(std::ilogb(value), least_exponent) - format.mantissa_bits;  // of the last place
  return std::ldexp(std::ceil(std::ldexp(value, -unit)), unit);
}

double RoundedDown(v1::DataType type, double value) { return -RoundedUp(type, -value); }

std::string EncodedScalar(v1::DataType type, double value) {
  switch (type) {
    case v1::DATA_TYPE_F32:
      return Bytes(static_cast<float>(value));
    case v1::DATA_TYPE_F64:
      return Bytes(value);
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
      return Bytes(static_cast<uint16_t>(EncodedFloat(SmallFloatOf(type), value, LargestOf(type))));
    case v1::DATA_TYPE_F8E4M3:
    case v1::DATA_TYPE_F8E5M2:
      return Bytes(static_cast<uint8_t>(EncodedFloat(SmallFloatOf(type), value, LargestOf(type))));
    case v1::DATA_TYPE_U64:
      return Bytes(static_cast<uint64_t>(value));
    default:
      // Two's complement, little-endian: the low bytes are those of the narrower type.
      return Bytes(static_cast<int64_t>(value)).substr(0, ElementBytes(type));
  }
}

double DecodedScalar(v1::DataType type, const char* bytes) {
  switch (type) {
    case v1::DATA_TYPE_F64:
      return At<double>(bytes);
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
      return DecodedFloat(SmallFloatOf(type), static_cast<uint32_t>(At<uint16_t>(bytes)));
    case v1::DATA_TYPE_F8E4M3:
    case v1::DATA_TYPE_F8E5M2:
      return DecodedFloat(SmallFloatOf(type), static_cast<uint32_t>(At<uint8_t>(bytes)));
    case v1::DATA_TYPE_I8:
      return At<int8_t>(bytes);
    case v1::DATA_TYPE_U8:
    case v1::DATA_TYPE_BOOL:
      return At<uint8_t>(bytes);
    case v1::DATA_TYPE_I16:
      return At<int16_t>(bytes);
    case v1::DATA_TYPE_U16:
      return At<uint16_t>(bytes);
    case v1::DATA_TYPE_I32:
      return At<int32_t>(bytes);
    case v1::DATA_TYPE_U32:
      return At<uint32_t>(bytes);
    case v1::DATA_TYPE_I64:
      return At<int64_t>(bytes);
    case v1::DATA_TYPE_U64:
      return At<uint64_t>(bytes);
    default:
      return At<float>(bytes);
  }
}

}  // namespace pawl
