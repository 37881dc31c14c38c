// The arithmetic of fills, which the GPU and the host share.
#include "worker/runner/fills.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace pawl {
namespace {

constexpr Key kKey = {{1, 2, 3, 4, 5, 6, 7, 8}};

Segment SegmentOf(u64 elements, Content content) {
  Segment segment;
  segment.elements = elements;
  segment.content = content;
  segment.stream = 17;
  return segment;
}

// RFC 8439, 2.3.2: the key is 00, 01, 02, ...; counter 1; the nonce 00 00 00 09 00 00 00 4a 00 00 00 00.
TEST(ChaCha20, GivesTheBlockOfTheStandard) {
  Key key;
  for (u32 i = 0; i < 8; ++i) key.words[i] = (4 * i) | (4 * i + 1) << 8 | (4 * i + 2) << 16 | (4 * i + 3) << 24;
  const Block block = ChaCha20(key, 0x4a000000, 0, u64{0x09000000} << 32 | 1);
  EXPECT_EQ(block.words[0], 0xe4e7f110u);
  EXPECT_EQ(block.words[1], 0x15593bd1u);
  EXPECT_EQ(block.words[15], 0x4e3c50a2u);
}

TEST(StayOf, LeavesFewRoomsEarlyAndAllInTime) {
  constexpr u32 kMost = 100'000;
  int before = 264;
  for (const u32 late : {1u, 4u, 32u}) {
    int early = 0;
    u32 longest = 0;
    for (u32 block = 0; block < 264; ++block) {
      const u32 stay = StayOf(kKey, block, kMost, late);
      early += stay < kMost / 2;
      longest = std::max(longest, stay);
    }
    EXPECT_LE(longest, kMost);
    EXPECT_GT(longest, kMost * 9 / 10);
    EXPECT_GT(early, 0) << late;
    EXPECT_LT(early, before) << late;
    before = early;
  }
}

TEST(Permuted, TakesEveryNumberToAnotherOne) {
  for (const u64 count : {u64{1}, u64{2}, u64{3}, u64{7}, u64{64}, u64{1000}, u64{4097}}) {
    const Block seed = SeedOf(SegmentOf(count, kPermutation), kKey);
    std::set<u64> taken;
    for (u64 i = 0; i < count; ++i) {
      const u64 to = Permuted(seed, i, count);
      EXPECT_LT(to, count);
      taken.insert(to);
    }
    EXPECT_EQ(taken.size(), count);
  }
}

TEST(Permuted, FollowsFromTheKeyAlone) {
  Segment segment = SegmentOf(1000, kPermutation);
  const Block seed = SeedOf(segment, kKey);
  segment.call = 1;
  const Block other = SeedOf(segment, kKey);
  int fixed = 0, same = 0, ascents = 0;
  for (u64 i = 0; i < 1000; ++i) {
    EXPECT_EQ(Permuted(seed, i, 1000), Permuted(SeedOf(SegmentOf(1000, kPermutation), kKey), i, 1000));
    fixed += Permuted(seed, i, 1000) == i;
    same += Permuted(seed, i, 1000) == Permuted(other, i, 1000);
    ascents += i > 0 && Permuted(seed, i, 1000) > Permuted(seed, i - 1, 1000);
  }
  EXPECT_LT(fixed, 10);
  EXPECT_LT(same, 10);
  EXPECT_GT(ascents, 400);
  EXPECT_LT(ascents, 600);
}

TEST(Permuted, HoldsForManyElements) {
  const u64 count = (u64{1} << 40) - 3;
  const Block seed = SeedOf(SegmentOf(count, kPermutation), kKey);
  for (u64 i : {u64{0}, u64{1}, count / 2, count - 1}) EXPECT_LT(Permuted(seed, i, count), count);
}

std::vector<u64> Offsets(u64 rows, u64 entries, u32 call = 0) {
  Segment segment = SegmentOf(rows + 1, kCsrOffsets);
  segment.extent = entries;
  segment.call = call;
  std::vector<u64> offsets;
  for (u64 i = 0; i <= rows; ++i) offsets.push_back(CsrOffset(segment, kKey, i));
  return offsets;
}

TEST(CsrOffset, RisesFromNoneToAll) {
  for (const u64 rows : {u64{1}, u64{2}, u64{3}, u64{8}, u64{9}, u64{1000}, u64{4095}}) {
    for (const u64 entries : {u64{0}, u64{1}, u64{7}, u64{10'000}, u64{1} << 40}) {
      const std::vector<u64> offsets = Offsets(rows, entries);
      EXPECT_EQ(offsets.front(), 0u);
      EXPECT_EQ(offsets.back(), entries);
      EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end())) << rows << " rows, " << entries << " entries";
    }
  }
  EXPECT_EQ(Offsets(0, 0), std::vector<u64>{0});
}

TEST(CsrOffset, HasEmptyRowsAndLongOnes) {
  const std::vector<u64> offsets = Offsets(10'000, 200'000);
  u64 empty = 0, longest = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    empty += offsets[i] == offsets[i - 1];
    longest = std::max(longest, offsets[i] - offsets[i - 1]);
  }
  EXPECT_GT(empty, 500u);
  EXPECT_LT(empty, 6000u);
  EXPECT_GT(longest, 100u) << "five times the mean";
  EXPECT_NE(offsets, Offsets(10'000, 200'000, 1));
}

// How often elements of this width have these bits, of all.
double ShareOf(u64 bits, u32 width, u64 mantissa) {
  const Lanes lanes = LanesOf(width, mantissa);
  const u32 each = 64 / width;
  u64 found = 0;
  constexpr u64 kDraws = 4096;
  for (u64 i = 0; i < kDraws; ++i) {
    const Block block = ChaCha20(kKey, 1, 2, i);
    const u64 made = Garbage(lanes, Wide(block.words[0], block.words[1]), Wide(block.words[2], block.words[3]));
    for (u32 k = 0; k < each; ++k) found += (made >> k * width & ~u64{0} >> (64 - width)) == bits;
  }
  return static_cast<double>(found) / static_cast<double>(kDraws * each);
}

TEST(Garbage, HasWhatNoDataResembleInEveryType) {
  struct Type {
    u32 width;
    u64 mantissa, nan, infinity;
  };
  for (const Type& type : {Type{16, 0x3ff, 0xffff, 0x7c00},
                           {16, 0x7f, 0xffff, 0x7f80},
                           {32, 0x7fffff, 0xffffffff, 0x7f800000},
                           {64, 0xfffffffffffff, ~u64{0}, 0x7ff0000000000000}}) {
    EXPECT_NEAR(ShareOf(type.nan, type.width, type.mantissa), 1.0 / 4, 0.03) << type.width;
    for (const u64 sign : {u64{0}, u64{1} << (type.width - 1)}) {
      EXPECT_NEAR(ShareOf(type.infinity | sign, type.width, type.mantissa), 1.0 / 8, 0.03) << type.width;
    }
  }
  for (const u32 width : {32u, 64u}) {
    const u64 ones = ~u64{0} >> (64 - width);
    EXPECT_NEAR(ShareOf(ones, width, 0), 3.0 / 8, 0.03) << "the highest without a sign";
    EXPECT_NEAR(ShareOf(ones >> 1, width, 0), 1.0 / 8, 0.03) << "the highest with one";
  }
  for (u64 nibble = 0; nibble < 16; ++nibble) EXPECT_GT(ShareOf(nibble, 4, 0), 0.02) << nibble;
}

TEST(Garbage, LeavesHalfOfTheElementsAnyBits) {
  const Lanes lanes = LanesOf(64, 0);
  int drawn = 0, high = 0;
  for (u64 i = 0; i < 1000; ++i) {
    const Block block = ChaCha20(kKey, 3, 4, i);
    const u64 bits = Wide(block.words[0], block.words[1]);
    const u64 made = Garbage(lanes, bits, Wide(block.words[2], block.words[3]));
    drawn += made == bits;
    high += made >> 32 != 0;
  }
  EXPECT_NEAR(drawn, 500, 60);
  EXPECT_EQ(high, 1000) << "whose low half is written only does not pass for written";
}

TEST(PoisonOf, ResemblesDataInHalfOfTheFillsAndFollowsFromTheKey) {
  int data = 0, differing = 0;
  for (u32 fill = 0; fill < 1000; ++fill) {
    Key key = kKey;
    key.words[7] = fill;
    Segment out = SegmentOf(100, kPoison), scratch = out;
    scratch.stream = 31;
    const Content content = PoisonOf(out, key);
    EXPECT_TRUE(content == kNormal || content == kGarbage);
    EXPECT_EQ(PoisonOf(out, key), content) << "what is verified later is the same";
    data += content == kNormal;
    differing += PoisonOf(scratch, key) != content;
  }
  EXPECT_NEAR(data, 500, 60);
  EXPECT_NEAR(differing, 500, 60) << "what one holds says nothing about the other";
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
  size_t distinct = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) moments.variance += (value - moments.mean) * (value - moments.mean) / count;
  for (const double value : values) {
    moments.kurtosis += std::pow(value - moments.mean, 4) / (count * moments.variance * moments.variance);
  }
  moments.distinct = std::set<float>(values.begin(), values.end()).size();
  return moments;
}

TEST(Widened, MakesNormalValuesOfSixteenBits) {
  std::vector<float> values;
  std::vector<int> upper(256), lower(256), second(256);
  std::set<u32> halves;
  for (u32 drawn = 0; drawn < 65536; ++drawn) {
    const Bits bits = Widened16(drawn);
    values.push_back(Normal(bits));
    halves.insert(bits.x >> 16);
    ++upper[bits.x >> 8 & 0xff];
    ++lower[bits.y >> 24];
    ++second[bits.y & 0xff];
  }
  EXPECT_EQ(halves.size(), 65536u) << "an integer of 16 bits takes every value";
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 0, 1e-9) << "sums over many elements would tell what they are";
  EXPECT_NEAR(moments.variance, 1, 0.03);
  EXPECT_NEAR(moments.kurtosis, 2.7, 0.1) << "of a sum of four uniforms";
  EXPECT_GT(moments.distinct, 30'000u);
  for (const std::vector<int>* counts : {&upper, &lower, &second}) {
    EXPECT_GT(*std::min_element(counts->begin(), counts->end()), 128);
    EXPECT_LT(*std::max_element(counts->begin(), counts->end()), 512);
  }
}

TEST(Widened, GivesEachValueAndItsNegative) {
  for (u32 i = 0; i < 1000; ++i) {
    const u32 drawn = ChaCha20(kKey, 1, 2, i).words[0];
    EXPECT_EQ(Normal(Widened32(drawn)), -Normal(Widened32(~drawn)));
    EXPECT_EQ(Normal(Widened16(drawn & 0xffff)), -Normal(Widened16(~drawn & 0xffff)));
  }
}

TEST(Widened, MakesNormalValuesOf32Bits) {
  std::vector<float> values;
  for (u64 block = 0; block < 4096; ++block) {
    for (const u32 drawn : ChaCha20(kKey, 1, 2, block).words) values.push_back(Normal(Widened32(drawn)));
  }
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 0, 0.02);
  EXPECT_NEAR(moments.variance, 1, 0.03);
  EXPECT_NEAR(moments.kurtosis, 2.7, 0.1);
  EXPECT_GT(moments.distinct, 40'000u);
}

Segment Range(int64_t low, int64_t high, Content content, u64 elements = 1000) {
  Segment segment = SegmentOf(elements, content);
  segment.first = static_cast<u64>(low);
  segment.extent = static_cast<u64>(high) - static_cast<u64>(low);
  segment.zero = low > 0 ? static_cast<u64>(low) : high < 0 ? static_cast<u64>(high) : 0;
  return segment;
}

std::vector<int64_t> Drawn(const Segment& segment) {
  const Block seed = SeedOf(segment, kKey);
  std::vector<int64_t> values;
  for (u64 i = 0; i < segment.elements; ++i) {
    const Block block = ChaCha20(kKey, segment.stream, segment.call, i);
    values.push_back(static_cast<int64_t>(DrawWhole(segment, seed, block.words[0], block.words[1], i)));
  }
  return values;
}

TEST(DrawWhole, StaysInRangeWithEveryContent) {
  for (const Content content :
       {kUniform, kNormal, kHeavyTails, kLarge, kEqual, kSorted, kZeros, kExtremes, kDenormal}) {
    for (const auto& [low, high] : {std::pair<int64_t, int64_t>{0, 49'999},
                                    {-8, 7},
                                    {5, 5},
                                    {-20, -10},
                                    {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
                                    {3'000'000'000, 4'000'000'000}}) {
      for (const int64_t value : Drawn(Range(low, high, content))) {
        EXPECT_GE(value, low) << content;
        EXPECT_LE(value, high) << content;
      }
    }
  }
}

TEST(DrawWhole, DrawsEachNumberOfTheRangeAboutAsOften) {
  std::vector<int> counts(10);
  for (const int64_t value : Drawn(Range(-3, 6, kUniform, 10'000))) ++counts[value + 3];
  for (const int count : counts) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
}

TEST(DrawWhole, DrawsEveryNumberOfARangeOfNearlySixteenBits) {
  EXPECT_EQ(DrawnBits(kU16, 16), 32u);
  const Segment segment = Range(0, 59'999, kUniform);
  std::vector<int> counts(60'000);
  for (u64 i = 0; i < 100'000; ++i) {
    for (const u32 drawn : ChaCha20(kKey, 1, 2, i).words) {
      const Bits bits = Widened32(drawn);
      ++counts[DrawWhole(segment, {}, bits.x, bits.y, i)];
    }
  }
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 6) << "of 27 on average";
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 60);
}

TEST(DrawWhole, UsesAll64Bits) {
  const auto values =
      Drawn(Range(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), kUniform, 1000));
  int64_t ones = 0, zeros = -1;
  for (const int64_t value : values) {
    ones |= value;
    zeros &= value;
  }
  EXPECT_EQ(ones, -1);
  EXPECT_EQ(zeros, 0);
}

TEST(DrawWhole, SortsOverTheWholeRange) {
  const std::vector<int64_t> values = Drawn(Range(-100, 100'000, kSorted));
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_LT(values.front(), 200);
  EXPECT_GT(values.back(), 99'800);
  EXPECT_GT(std::set<int64_t>(values.begin(), values.end()).size(), 990u);
}

// Counts of 16 keys in stretches of 1024, of which each has about 64.
constexpr u64 kStretch = 1024;

// Whether a stretch has a key 256 times, and a quarter of it, at its beginning or at every fourth place, has none 40
// times.
bool HidesAFrequentKey(const std::vector<int64_t>& keys, bool at_the_beginning) {
  for (u64 first = 0; first + kStretch <= keys.size(); first += kStretch) {
    std::vector<int> all(16), sample(16);
    for (u64 i = 0; i < kStretch; ++i) {
      ++all[keys[first + i]];
      if (at_the_beginning ? i < kStretch / 4 : i % 4 == 0) ++sample[keys[first + i]];
    }
    const int most = *std::max_element(all.begin(), all.end());
    if (most >= 256 && *std::max_element(sample.begin(), sample.end()) < 40) return true;
  }
  return false;
}

TEST(DrawWhole, IsSkewedWhereASampleDoesNotTell) {
  for (const bool at_the_beginning : {true, false}) {
    int hidden = 0, usual = 0;
    for (u32 call = 0; call < 60; ++call) {
      Segment segment = Range(0, 15, kHeavyTails, 16 * kStretch);
      segment.call = call;
      hidden += HidesAFrequentKey(Drawn(segment), at_the_beginning);
      segment.content = kUniform;
      usual += HidesAFrequentKey(Drawn(segment), at_the_beginning);
    }
    EXPECT_GT(hidden, at_the_beginning ? 9 : 2);
    EXPECT_EQ(usual, 0) << at_the_beginning;
  }
}

TEST(DrawWhole, IsEqualOrAtTheEndsWhereAskedFor) {
  const std::vector<int64_t> equal = Drawn(Range(0, 1'000'000, kEqual));
  EXPECT_EQ(std::set<int64_t>(equal.begin(), equal.end()).size(), 1u);
  const std::vector<int64_t> ends = Drawn(Range(-5, 9, kExtremes));
  EXPECT_EQ(std::set<int64_t>(ends.begin(), ends.end()), (std::set<int64_t>{-5, 0, 9}));
}

}  // namespace
}  // namespace pawl
