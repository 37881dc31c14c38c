#include "worker/check/single_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/space.h"
#include "tests/worker/trial/scripted_gpu.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SingleChangesTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<v1::CheckChange>> Build() {
    const v1::Size& size = bundle_.sizes(1);
    const absl::StatusOr<BuiltVariant> start =
        BuildVariant(gpu_.builder(), bundle_, StartVariant(bundle_), {size}, gpu_.gpu());
    if (!start.ok()) return start.status();
    return BuildSingleChanges(gpu_.builder(), bundle_, *start, size, gpu_.gpu(), 1);
  }
  ScriptedGpu gpu_;
  v1::Bundle bundle_ = CopyBundle();
};

// TILE is 32 at the start, 64, 2048 (which no GPU launches) and 4096 (which the constraint forbids).
TEST_F(SingleChangesTest, BuildsEveryAllowedValueAndSaysWhichCannotBeBuilt) {
  const absl::StatusOr<std::vector<v1::CheckChange>> changes = Build();
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_THAT(*changes, SizeIs(2));
  EXPECT_EQ((*changes)[0].change().to(), 64);
  EXPECT_FALSE((*changes)[0].has_failure());
  EXPECT_EQ((*changes)[1].change().to(), 2048);
  EXPECT_EQ((*changes)[1].failure().check(), v1::CHECK_LAUNCH_LIMITS);
  EXPECT_THAT(VariablesWithoutEffect(*changes), IsEmpty());
}

TEST_F(SingleChangesTest, IsTheMachinesFaultWhereItCannotBuild) {
  gpu_.build_faults["TILE=64"] = absl::UnavailableError("no compiler");
  EXPECT_TRUE(absl::IsUnavailable(Build().status()));
}

TEST(VariablesWithoutEffect, AreThoseWhoseEveryValueGivesTheStart) {
  v1::CheckChange same, other;
  same.mutable_change()->set_variable("A");
  same.set_same_code(true);
  other.mutable_change()->set_variable("B");
  v1::CheckChange also = same;
  also.mutable_change()->set_variable("B");
  EXPECT_THAT(VariablesWithoutEffect({same, other, also}), ElementsAre("A"));
}

}  // namespace
}  // namespace pawl
