#include "worker/runner/struct_table.h"

#include <gtest/gtest.h>

#include "worker/build/plan_arguments.h"

namespace pawl {
namespace {

// A launch with a struct of `a`, `b` and, where it counts, the launch's number, in memory.
v1::Plan Plan(int repeat, bool swaps, bool counts) {
  v1::Plan plan;
  v1::PlanLaunch& launch = *plan.add_launches();
  launch.set_repeat(repeat);
  v1::PlanStruct& fields = *launch.add_arguments()->mutable_fields();
  fields.set_in_memory(true);
  fields.add_fields()->set_tensor(0);
  fields.add_fields()->set_tensor(1);
  if (counts) fields.add_fields()->set_index(true);
  if (!swaps) return plan;
  launch.add_swap(0);
  launch.add_swap(1);
  return plan;
}

size_t Contents(const v1::Plan& plan) {
  StructTable table;
  table.Add(plan, {0x100, 0x200});
  return table.size();
}

TEST(StructTable, HoldsEveryContentOnce) {
  EXPECT_EQ(Contents(Plan(1, false, false)), 1u);
  EXPECT_EQ(Contents(Plan(1000, false, false)), 1u);
  EXPECT_EQ(Contents(Plan(1000, true, false)), 2u);
  EXPECT_EQ(Contents(Plan(1000, false, true)), 1000u);
  EXPECT_EQ(Contents(v1::Plan()), 0u);
}

TEST(StructTable, HoldsThoseOfEveryCallAndOfTheSetup) {
  v1::Plan plan = Plan(2, true, false);
  *plan.add_setup() = Plan(1, false, true).launches(0);
  StructTable table;
  table.Add(plan, {0x100, 0x200});
  EXPECT_EQ(table.size(), 3u);
  table.Add(plan, {0x300, 0x400});
  EXPECT_EQ(table.size(), 6u);
  table.Add(plan, {0x300, 0x400});
  EXPECT_EQ(table.size(), 6u);
  table.Clear();
  EXPECT_EQ(table.size(), 0u);
}

TEST(StructTable, KnowsWhatWasAddedOnly) {
  const v1::Plan plan = Plan(3, true, false);
  StructTable table;
  table.Add(plan, {0x100, 0x200});
  const v1::PlanStruct& fields = plan.launches(0).arguments(0).fields();
  const absl::StatusOr<CUdeviceptr> first = table.Find(StructContent(fields, {0x100, 0x200}, 0));
  const absl::StatusOr<CUdeviceptr> exchanged = table.Find(StructContent(fields, {0x200, 0x100}, 1));
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(exchanged.ok());
  EXPECT_NE(*first, *exchanged);
  EXPECT_FALSE(table.Find(StructContent(fields, {0x100, 0x300}, 0)).ok());
}

}  // namespace
}  // namespace pawl
