#include "worker/runner/tensor_fill.h"

#include <gtest/gtest.h>

#include <limits>

namespace pawl {
namespace {

v1::PlanTensor Tensor(v1::DataType type, v1::Fill fill, int64_t elements = 100) {
  v1::PlanTensor tensor;
  tensor.set_name("x");
  tensor.set_type(type);
  tensor.set_role(v1::TENSOR_ROLE_INPUT);
  tensor.set_fill(fill);
  tensor.set_elements(elements);
  tensor.add_shape(elements);
  return tensor;
}

v1::PlanTensor Within(v1::PlanTensor tensor, double low, double high) {
  tensor.set_low(low);
  tensor.set_high(high);
  return tensor;
}

v1::InputDraw Draw(v1::Distribution distribution) {
  v1::InputDraw draw;
  draw.set_distribution(distribution);
  draw.set_magnitude(1e9);
  return draw;
}

Segment Own(const v1::PlanTensor& tensor) { return InputFill(tensor, {}, 0); }

TEST(InputFill, DrawsIntegersOfEveryWidthFromTheirRange) {
  const Segment tokens = Own(Within(Tensor(v1::DATA_TYPE_I64, v1::FILL_INTEGERS), 0, 49'999));
  EXPECT_EQ(tokens.content, static_cast<u32>(kUniform));
  EXPECT_EQ(tokens.first, 0u);
  EXPECT_EQ(tokens.extent, 49'999u);
  EXPECT_TRUE(tokens.whole);
  const Segment nibbles = Own(Within(Tensor(v1::DATA_TYPE_I4, v1::FILL_INTEGERS), -8, 7));
  EXPECT_EQ(static_cast<int64_t>(nibbles.first), -8);
  EXPECT_EQ(nibbles.extent, 15u);
  EXPECT_EQ(nibbles.zero, 0u);
  const Segment all = Own(Within(Tensor(v1::DATA_TYPE_U64, v1::FILL_INTEGERS), 0, 0x1p64));
  EXPECT_EQ(all.extent, ~u64{0});
  const Segment wide = Own(Within(Tensor(v1::DATA_TYPE_I64, v1::FILL_INTEGERS), -0x1p63, 0x1p63));
  EXPECT_EQ(wide.first, u64{1} << 63);
  EXPECT_EQ(wide.extent, ~u64{0});
}

// What looks at a few elements takes them for the bundle's own.
TEST(InputFill, KnowsWhatMostInputsHaveBesideAFewLargeOnes) {
  const auto large = [](v1::PlanTensor tensor) { return InputFill(tensor, Draw(v1::DISTRIBUTION_HEAVY_TAILS), 0); };
  const Segment normal = large(Tensor(v1::DATA_TYPE_F32, v1::FILL_NORMAL));
  EXPECT_EQ(normal.usual, static_cast<u32>(kNormal));
  EXPECT_EQ(normal.usual_low, -4);
  EXPECT_EQ(normal.usual_high, 4);
  EXPECT_EQ(normal.high, 1e9);
  const Segment uniform = large(Within(Tensor(v1::DATA_TYPE_F16, v1::FILL_UNIFORM), -9, 9));
  EXPECT_EQ(uniform.usual, static_cast<u32>(kUniform));
  EXPECT_EQ(uniform.usual_low, 0);
  EXPECT_EQ(uniform.usual_high, 1);
  EXPECT_EQ(uniform.low, -9);
}

TEST(InputFill, StaysWithinARangeWhoseEndsTheTypeLacks) {
  const Segment below_one = Own(Within(Tensor(v1::DATA_TYPE_BF16, v1::FILL_UNIFORM), 0, 0.999));
  EXPECT_EQ(below_one.high, 0.99609375) << "rounded to the nearest it would be 1";
  const Segment tenth = Own(Within(Tensor(v1::DATA_TYPE_F16, v1::FILL_NORMAL), 0.1, 1));
  EXPECT_GT(tenth.low, 0.1);
  EXPECT_LT(tenth.low, 0.1001);
  const Segment doubles = Own(Within(Tensor(v1::DATA_TYPE_F64, v1::FILL_NORMAL), 0.1, 0.9));
  EXPECT_EQ(doubles.low, 0.1);
  v1::PlanTensor constant = Tensor(v1::DATA_TYPE_F16, v1::FILL_CONSTANT);
  constant.set_low(0.1);
  EXPECT_EQ(Own(constant).low, 0.1) << "the nearest will do";
}

TEST(InputFill, DrawsWholeNumbersIntoFloatsWhereTheFillIsOfIntegers) {
  const Segment segment = Own(Within(Tensor(v1::DATA_TYPE_F16, v1::FILL_INTEGERS), -3, 3));
  EXPECT_TRUE(segment.whole);
  EXPECT_EQ(segment.extent, 6u);
  EXPECT_FALSE(Own(Within(Tensor(v1::DATA_TYPE_F16, v1::FILL_UNIFORM), -3, 3)).whole);
}

TEST(InputFill, KeepsWithinWhatANarrowTypeHoldsWithoutARange) {
  EXPECT_EQ(Own(Tensor(v1::DATA_TYPE_BOOL, v1::FILL_INTEGERS)).extent, 1u);
  EXPECT_EQ(Own(Tensor(v1::DATA_TYPE_U4, v1::FILL_INTEGERS)).extent, 15u);
  EXPECT_EQ(Own(Tensor(v1::DATA_TYPE_I8, v1::FILL_INTEGERS)).extent, 127u);
  EXPECT_EQ(Own(Tensor(v1::DATA_TYPE_I32, v1::FILL_NORMAL)).extent, 1023u);
}

TEST(InputFill, MakesConstantsOfEveryType) {
  for (const v1::DataType type : {v1::DATA_TYPE_F8E4M3, v1::DATA_TYPE_I16, v1::DATA_TYPE_U64, v1::DATA_TYPE_F64}) {
    for (const auto& [fill, value] : {std::pair{v1::FILL_ZEROS, 0}, {v1::FILL_ONES, 1}, {v1::FILL_CONSTANT, 5}}) {
      v1::PlanTensor tensor = Tensor(type, fill);
      tensor.set_low(5);
      for (const v1::Distribution distribution : {v1::DISTRIBUTION_UNSPECIFIED, v1::DISTRIBUTION_LARGE}) {
        const Segment segment = InputFill(tensor, Draw(distribution), 0);
        EXPECT_EQ(segment.content, static_cast<u32>(kEqual));
        EXPECT_EQ(segment.low, value);
        EXPECT_EQ(segment.high, value);
        EXPECT_EQ(segment.first, static_cast<u64>(value));
        EXPECT_EQ(segment.extent, 0u);
      }
    }
  }
}

TEST(InputFill, KeepsStructureWhateverTheDistribution) {
  const std::pair<v1::Fill, Content> kept[] = {{v1::FILL_IOTA, kIota},
                                               {v1::FILL_PERMUTATION, kPermutation},
                                               {v1::FILL_CSR_OFFSETS, kCsrOffsets},
                                               {v1::FILL_BYTES, kRandomBytes}};
  for (int i = v1::DISTRIBUTION_UNSPECIFIED; i <= v1::DISTRIBUTION_STRIPED; ++i) {
    const v1::InputDraw draw = Draw(static_cast<v1::Distribution>(i));
    for (const auto& [fill, content] : kept) {
      v1::PlanTensor tensor = Tensor(v1::DATA_TYPE_I32, fill);
      tensor.set_low(0);
      tensor.set_high(5000);
      const Segment segment = InputFill(tensor, draw, 0);
      EXPECT_EQ(segment.content, static_cast<u32>(content));
      EXPECT_EQ(segment.extent, 5000u);
    }
    const Segment sorted = InputFill(Within(Tensor(v1::DATA_TYPE_F32, v1::FILL_SORTED), -1, 1), draw, 0);
    EXPECT_TRUE(sorted.content == kSorted || sorted.content == kEqual || sorted.content == kZeros) << i;
  }
}

TEST(InputFill, DrawsIntegersOtherwiseOnlyWithinTheirRange) {
  for (const auto& [distribution, content] : {std::pair{v1::DISTRIBUTION_EQUAL, kEqual},
                                              {v1::DISTRIBUTION_EXTREMES, kExtremes},
                                              {v1::DISTRIBUTION_SORTED, kSorted}}) {
    const Segment segment =
        InputFill(Within(Tensor(v1::DATA_TYPE_I64, v1::FILL_INTEGERS), 10, 20), Draw(distribution), 0);
    EXPECT_EQ(segment.content, static_cast<u32>(content));
    EXPECT_EQ(segment.first, 10u);
    EXPECT_EQ(segment.extent, 10u);
    EXPECT_EQ(segment.zero, 10u);
  }
}

TEST(InputFill, TakesTheWholeRangeOfAUniformFillThatStatesOne) {
  EXPECT_EQ(Own(Within(Tensor(v1::DATA_TYPE_F32, v1::FILL_UNIFORM_RANGE), -2, 3)).low, -2);
  EXPECT_EQ(Own(Within(Tensor(v1::DATA_TYPE_F32, v1::FILL_UNIFORM_RANGE), -2, 3)).content, static_cast<u32>(kUniform));
  EXPECT_EQ(Own(Within(Tensor(v1::DATA_TYPE_F32, v1::FILL_UNIFORM), -2, 3)).low, 0);
}

TEST(InputFill, StaysWithinWhatFp8Holds) {
  const Segment segment = InputFill(Tensor(v1::DATA_TYPE_F8E4M3, v1::FILL_NORMAL), Draw(v1::DISTRIBUTION_LARGE), 0);
  EXPECT_EQ(segment.high, 448);
  EXPECT_EQ(segment.low, -448);
}

TEST(InputFill, CopiesWhatWasHandedOver) {
  v1::PlanTensor tensor = Tensor(v1::DATA_TYPE_F32, v1::FILL_FILE, 12);
  tensor.clear_shape();
  tensor.add_shape(3);
  tensor.add_shape(4);
  const Segment own = InputFill(tensor, {}, 0x1000);
  EXPECT_EQ(own.content, static_cast<u32>(kCopy));
  EXPECT_EQ(own.source, 0x1000u);
  EXPECT_EQ(own.row_bytes, 0u) << "what is timed is the file as it is";
  EXPECT_EQ(InputFill(tensor, Draw(v1::DISTRIBUTION_SORTED), 0x1000).row_bytes, 16u);
  tensor.set_type(v1::DATA_TYPE_I32);
  EXPECT_EQ(InputFill(tensor, Draw(v1::DISTRIBUTION_SORTED), 0x1000).row_bytes, 0u)
      << "rows of indices may be tied to another tensor's";
  tensor.set_fill(v1::FILL_PROBLEM);
  tensor.set_type(v1::DATA_TYPE_F32);
  EXPECT_EQ(InputFill(tensor, Draw(v1::DISTRIBUTION_SORTED), 0x1000).row_bytes, 0u);
}

TEST(InputFill, IsTheSameInEveryCallForStaticTensors) {
  v1::PlanTensor tensor = Tensor(v1::DATA_TYPE_F32, v1::FILL_NORMAL);
  EXPECT_FALSE(Own(tensor).shared);
  tensor.set_is_static(true);
  EXPECT_TRUE(Own(tensor).shared);
}

TEST(PoisonFill, MayResembleDataOfEveryType) {
  for (int type = v1::DATA_TYPE_F16; type <= v1::DATA_TYPE_U4; ++type) {
    const Segment segment = PoisonFill(Tensor(static_cast<v1::DataType>(type), v1::FILL_UNSPECIFIED));
    EXPECT_EQ(segment.content, static_cast<u32>(kPoison));
    EXPECT_TRUE(segment.whole ? segment.extent > 0 : segment.high == 4) << type;
  }
  EXPECT_EQ(PoisonFill(Tensor(v1::DATA_TYPE_BOOL, v1::FILL_UNSPECIFIED)).extent, 1u);
}

TEST(PoisonsInTurn, ResembleDataInOneOfTwoCalls) {
  const std::vector<Segment> poisons(64, PoisonFill(Tensor(v1::DATA_TYPE_F32, v1::FILL_UNSPECIFIED)));
  SecretRandom random;
  const auto turns = PoisonsInTurn(poisons, random);
  int data_first = 0;
  for (size_t i = 0; i < poisons.size(); ++i) {
    data_first += turns[0][i].content == kNormal;
    EXPECT_EQ(turns[0][i].content + turns[1][i].content, static_cast<u32>(kNormal) + kGarbage);
    EXPECT_EQ(turns[1][i].high, 4);
  }
  EXPECT_GT(data_first, 8) << "of 64";
  EXPECT_LT(data_first, 56);
}

}  // namespace
}  // namespace pawl
