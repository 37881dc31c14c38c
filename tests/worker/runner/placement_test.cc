#include "worker/runner/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/data_type.h"

namespace pawl {
namespace {

v1::Plan Plan(int64_t scratch) {
  v1::Plan plan;
  for (const auto& [name, elements, align] :
       {std::tuple{"x", int64_t{1001}, 0}, {"y", int64_t{7}, 16}, {"z", scratch, 1024}}) {
    v1::PlanTensor& tensor = *plan.add_tensors();
    tensor.set_name(name);
    tensor.set_type(v1::DATA_TYPE_F32);
    tensor.set_role(v1::TENSOR_ROLE_INPUT);
    tensor.set_elements(elements);
    tensor.set_align(align);
  }
  return plan;
}

constexpr PlacementStyle kStyles[] = {PlacementStyle::kPacked, PlacementStyle::kGaps, PlacementStyle::kScattered};

TEST(Placement, LaysNoTensorOverAnotherAndKeepsAlignmentAndBounds) {
  const v1::Plan small = Plan(100), large = Plan(5000);
  SecretRandom random;
  for (const PlacementStyle style : kStyles) {
    for (const uint64_t bytes : {PlacementBytes(small, large, 9), uint64_t{1} << 30}) {
      for (int round = 0; round < 50; ++round) {
        const std::vector<Arena> arenas = DrawPlacement(small, large, 9, bytes, style, random);
        ASSERT_EQ(arenas.size(), 9u);
        std::vector<std::pair<uint64_t, uint64_t>> spans;
        for (const Arena& arena : arenas) {
          EXPECT_EQ(arena.Offset(0) % 256, 0u);
          EXPECT_EQ(arena.Offset(1) % 16, 0u);
          EXPECT_EQ(arena.Offset(2) % 1024, 0u);
          for (int i = 0; i < 3; ++i) {
            spans.emplace_back(arena.Offset(i), arena.Offset(i) + SharedTensorBytes(small, large, i));
          }
        }
        std::sort(spans.begin(), spans.end());
        for (size_t i = 1; i < spans.size(); ++i) ASSERT_LE(spans[i - 1].second, spans[i].first);
        ASSERT_LE(spans.back().second, bytes);
      }
    }
  }
}

TEST(Placement, StartsTensorsOfSmallAlignmentAtOddMultiplesInSomeCallsAndAtMultiplesOf256InOthers) {
  v1::Plan plan = Plan(100);
  plan.mutable_tensors(0)->set_align(4);
  SecretRandom random;
  int aligned = 0, odd = 0, mixed = 0;
  for (int call = 0; call < 400; ++call) {
    const std::vector<uint64_t> shifts = DrawShifts(plan, random);
    ASSERT_EQ(shifts.size(), 3u);
    const Arena arena = Arena::For(plan, shifts);
    const uint64_t x = arena.Offset(0), y = arena.Offset(1);
    EXPECT_EQ(x % 4, 0u);
    EXPECT_EQ(y % 16, 0u);
    EXPECT_EQ(arena.Offset(2) % 1024, 0u);
    aligned += x % 256 == 0 && y % 256 == 0;
    odd += x % 8 == 4 && y % 32 == 16;
    mixed += (x % 256 == 0) != (y % 256 == 0);
  }
  EXPECT_GT(aligned, 40);
  EXPECT_GT(odd, 100);
  EXPECT_GT(mixed, 10);
}

TEST(Placement, StartsTensorsOfAnyAlignmentAtOddMultiplesOf256AndOfMoreAsOftenAsNot) {
  v1::Plan plan = Plan(100);
  plan.mutable_tensors(1)->set_align(256);
  SecretRandom random;
  int odd[3] = {};
  for (int call = 0; call < 400; ++call) {
    const Arena arena = Arena::For(plan, DrawShifts(plan, random));
    for (int i = 0; i < 3; ++i) {
      const uint64_t align = i == 2 ? 1024 : 256;
      EXPECT_EQ(arena.Offset(i) % align, 0u);
      odd[i] += arena.Offset(i) % (2 * align) == align;
    }
    EXPECT_EQ(arena.bytes(), Arena::For(plan).bytes());
  }
  for (const int count : odd) {
    EXPECT_GT(count, 100);
    EXPECT_LT(count, 300);
  }
}

TEST(Placement, ShiftsBytesByTheByte) {
  v1::Plan plan = Plan(100);
  for (v1::PlanTensor& tensor : *plan.mutable_tensors()) tensor.set_align(1);
  SecretRandom random;
  std::set<uint64_t> seen;
  for (int call = 0; call < 4000; ++call) {
    for (const uint64_t shift : DrawShifts(plan, random)) {
      ASSERT_LT(shift, 512u);
      seen.insert(shift % 4);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST(Placement, GivesAllCallsOnePlaceForEachStaticTensor) {
  v1::Plan plan = Plan(1000);
  const uint64_t apart = PlacementBytes(plan, plan, 5);
  plan.mutable_tensors(0)->set_is_static(true);
  EXPECT_LT(PlacementBytes(plan, plan, 5), apart);
  EXPECT_EQ(PlacementBytes(plan, plan, 1), PlacementBytes(Plan(1000), Plan(1000), 1));
  SecretRandom random;
  for (const PlacementStyle style : kStyles) {
    const std::vector<Arena> arenas = DrawPlacement(plan, plan, 5, PlacementBytes(plan, plan, 5), style, random);
    for (const Arena& arena : arenas) {
      EXPECT_EQ(arena.Offset(0), arenas[0].Offset(0));
      EXPECT_EQ(arena.Offset(1) == arenas[0].Offset(1), &arena == &arenas[0]);
    }
  }
}

TEST(Placement, DrawsOtherPlacesEveryTime) {
  const v1::Plan plan = Plan(100);
  SecretRandom random;
  for (const PlacementStyle style : kStyles) {
    std::set<uint64_t> places;
    for (int round = 0; round < 200; ++round) {
      places.insert(DrawPlacement(plan, plan, 2, uint64_t{1} << 30, style, random)[0].Offset(0));
    }
    EXPECT_GT(places.size(), 190u);
  }
}

TEST(Placement, ScattersOverTheWholeRunAndPacksClosely) {
  const v1::Plan plan = Plan(100);
  SecretRandom random;
  const uint64_t bytes = uint64_t{1} << 30;
  int upper = 0;
  for (int round = 0; round < 1000; ++round) {
    upper += DrawPlacement(plan, plan, 4, bytes, PlacementStyle::kScattered, random)[0].Offset(0) > bytes / 2;
    uint64_t low = bytes, high = 0;
    for (const Arena& arena : DrawPlacement(plan, plan, 4, bytes, PlacementStyle::kPacked, random)) {
      for (int i = 0; i < 3; ++i) {
        low = std::min(low, arena.Offset(i));
        high = std::max(high, arena.Offset(i) + TensorBytes(plan.tensors(i)));
      }
    }
    EXPECT_LE(high - low, PlacementBytes(plan, plan, 4));
  }
  EXPECT_GT(upper, 400);
  EXPECT_LT(upper, 600);
}

}  // namespace
}  // namespace pawl
