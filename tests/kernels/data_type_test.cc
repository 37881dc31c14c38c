#include "kernels/data_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace pawl {
namespace {

std::vector<v1::DataType> AllTypes() {
  std::vector<v1::DataType> types;
  for (int i = 1; i < v1::DataType_ARRAYSIZE; ++i) types.push_back(static_cast<v1::DataType>(i));
  return types;
}

uint64_t Bits(v1::DataType type, double value) {
  uint64_t bits = 0;
  const std::string bytes = EncodedScalar(type, value);
  for (size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(bytes[i]);
  return bits;
}

TEST(DataTypeTest, HasANameForEachTypeOfTheMessage) {
  ASSERT_EQ(DataTypeNames().size(), AllTypes().size());
  for (const v1::DataType type : AllTypes()) {
    std::string name = v1::DataType_Name(type).substr(std::string("DATA_TYPE_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(DataTypeName(type), name);
  }
}

TEST(DataTypeTest, PacksTwoFourBitElementsIntoAByte) {
  EXPECT_EQ(BytesOf(v1::DATA_TYPE_U4, 7), 4);
  EXPECT_EQ(BytesOf(v1::DATA_TYPE_I4, 8), 4);
  EXPECT_EQ(BytesOf(v1::DATA_TYPE_BOOL, 8), 8);
  EXPECT_EQ(BytesOf(v1::DATA_TYPE_BF16, 8), 16);
  EXPECT_EQ(BytesOf(v1::DATA_TYPE_I64, 8), 64);
}

TEST(DataTypeTest, KnowsWhatEachTypeHolds) {
  EXPECT_TRUE(Holds(v1::DATA_TYPE_I8, -128));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_I8, 128));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_U8, -1));
  EXPECT_TRUE(Holds(v1::DATA_TYPE_U4, 15));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_I4, 8));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_I64, 0.5));
  EXPECT_TRUE(Holds(v1::DATA_TYPE_F8E4M3, 448));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_F8E4M3, 449));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_BOOL, 2));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_F32, NAN));
  EXPECT_FALSE(Holds(v1::DATA_TYPE_F32, INFINITY));
}

TEST(DataTypeTest, EncodesAsTheGpuDoes) {
  EXPECT_EQ(Bits(v1::DATA_TYPE_F16, 1), 0x3c00u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_F16, -65504), 0xfbffu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_F16, 0x1p-24), 0x0001u) << "the smallest subnormal";
  EXPECT_EQ(Bits(v1::DATA_TYPE_F16, 2049), 0x6800u) << "ties to even";
  EXPECT_EQ(Bits(v1::DATA_TYPE_F16, 2051), 0x6802u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_BF16, 1), 0x3f80u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_BF16, 1 + 0x1p-8), 0x3f80u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_F8E4M3, 448), 0x7eu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_F8E4M3, 0x1p-9), 0x01u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_F8E5M2, 57344), 0x7bu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_I8, -1), 0xffu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_U16, 65535), 0xffffu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_I64, -2), 0xfffffffffffffffeu);
  EXPECT_EQ(Bits(v1::DATA_TYPE_U64, 0x1p63), 0x8000000000000000u);
  EXPECT_EQ(Bits(v1::DATA_TYPE_BOOL, 1), 1u);
}

TEST(DataTypeTest, DecodesWhatItEncoded) {
  for (const v1::DataType type : AllTypes()) {
    if (ElementBits(type) < 8) continue;
    SCOPED_TRACE(DataTypeName(type));
    for (const double value : {0.0, 1.0, LargestOf(type), LowestOf(type), -0.375, 0x1p-9}) {
      if (!Holds(type, value)) continue;
      const std::string bytes = EncodedScalar(type, value);
      ASSERT_EQ(bytes.size(), static_cast<size_t>(ElementBytes(type)));
      EXPECT_EQ(DecodedScalar(type, bytes.data()), value);
    }
  }
}

TEST(DataTypeTest, RoundsUpAndDownToValuesOfTheType) {
  EXPECT_EQ(RoundedDown(v1::DATA_TYPE_BF16, 0.999), 0.99609375);
  EXPECT_EQ(RoundedUp(v1::DATA_TYPE_BF16, 0.999), 1);
  EXPECT_EQ(RoundedUp(v1::DATA_TYPE_F16, -0.999), -RoundedDown(v1::DATA_TYPE_F16, 0.999));
  EXPECT_EQ(RoundedUp(v1::DATA_TYPE_F32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(RoundedDown(v1::DATA_TYPE_F32, 0.1), static_cast<double>(std::nextafter(0.1F, 0.0F)));
  EXPECT_EQ(RoundedUp(v1::DATA_TYPE_F8E4M3, 1e-5), 0x1p-9) << "its least number";
  EXPECT_EQ(RoundedDown(v1::DATA_TYPE_F8E4M3, 1e-5), 0);
  EXPECT_EQ(RoundedUp(v1::DATA_TYPE_F64, 0.1), 0.1);
  for (const v1::DataType type : AllTypes()) {
    for (const double value : {0.0, 1.0, LargestOf(type), LowestOf(type)}) {
      EXPECT_EQ(RoundedUp(type, value), value) << DataTypeName(type);
      EXPECT_EQ(RoundedDown(type, value), value) << DataTypeName(type);
    }
  }
}

TEST(DataTypeTest, EveryBitPatternOfASmallFloatComesBack) {
  for (const v1::DataType type : {v1::DATA_TYPE_F8E4M3, v1::DATA_TYPE_F8E5M2, v1::DATA_TYPE_F16, v1::DATA_TYPE_BF16}) {
    for (uint32_t bits = 0; bits < 1u << ElementBits(type); ++bits) {
      const char bytes[] = {static_cast<char>(bits & 0xff), static_cast<char>(bits >> 8)};
      const double value = DecodedScalar(type, bytes);
      if (!std::isfinite(value)) continue;
      ASSERT_EQ(Bits(type, value), bits) << DataTypeName(type);
    }
  }
}

}  // namespace
}  // namespace pawl
