#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"
#include "worker/record/recorder.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Bundle Golden() { return ReadBundle(BundleFolder::Golden()).bundle; }

int Distance(const v1::Variant& a, const v1::Variant& b) {
  int distance = 0;
  for (const auto& [name, value] : a.values()) distance += b.values().at(name) != value;
  return distance;
}

std::set<std::string> Texts(const std::vector<v1::Variant>& variants) {
  std::set<std::string> texts;
  for (const v1::Variant& variant : variants) texts.insert(VariantText(variant));
  return texts;
}

TEST(ConnectedSample, GivesAsManyAsAskedForNearestToTheStartFirst) {
  const v1::Bundle bundle = Golden();
  for (const int count : {1, 2, 7, 11, 14}) {
    const std::vector<v1::Variant> sample = ConnectedSample(bundle, count).value();
    ASSERT_EQ(sample.size(), count);
    EXPECT_EQ(Texts(sample).size(), count);
    EXPECT_EQ(VariantText(sample[0]), VariantText(StartVariant(bundle)));
    for (int i = 1; i < count; ++i) {
      EXPECT_TRUE(IsAllowed(bundle, sample[i]).value()) << VariantText(sample[i]);
      EXPECT_GE(Distance(sample[0], sample[i]), Distance(sample[0], sample[i - 1])) << VariantText(sample[i]);
    }
  }
}

TEST(ConnectedSample, LeadsToEveryVariantBySingleSteps) {
  const std::vector<v1::Variant> sample = ConnectedSample(Golden(), 11).value();
  for (size_t i = 1; i < sample.size(); ++i) {
    const bool connected = std::any_of(sample.begin(), sample.begin() + i,
                                       [&](const v1::Variant& before) { return Distance(before, sample[i]) == 1; });
    EXPECT_TRUE(connected) << VariantText(sample[i]);
  }
}

TEST(ConnectedSample, GivesAllThatIsAllowedWhenNoNumberIsAskedFor) {
  const v1::Bundle bundle = Golden();
  const std::vector<v1::Variant> sample = ConnectedSample(bundle, 0).value();
  EXPECT_EQ(sample.size(), 14u);
  EXPECT_EQ(Texts(sample), Texts(AllowedVariants(bundle).value()));
  EXPECT_EQ(Texts(ConnectedSample(bundle, 1000).value()), Texts(sample));
}

TEST(ConnectedSample, GivesPartsThatNoSingleStepReachesOnlyWithTheWhole) {
  v1::Bundle bundle = Golden();
  // Leaves (1, 64) and (2, 32): two variables apart.
  bundle.add_constraints()->set_that("SPLITS == 1 && TILE == 64 || SPLITS == 2 && TILE == 32");
  const std::vector<v1::Variant> reached = ConnectedSample(bundle, 1000).value();
  EXPECT_THAT(Texts(reached), ElementsAre("MAX_REGISTERS=255 SPLITS=1 TILE=64", "MAX_REGISTERS=64 SPLITS=1 TILE=64"));
  const std::vector<v1::Variant> whole = ConnectedSample(bundle, 0).value();
  EXPECT_EQ(whole.size(), 4u);
  EXPECT_EQ(Texts(whole), Texts(AllowedVariants(bundle).value()));
  EXPECT_EQ(VariantText(whole[0]), VariantText(StartVariant(bundle)));
}

TEST(ConnectedSample, PassesOnThatAConstraintCantBeEvaluated) {
  v1::Bundle bundle = Golden();
  bundle.add_constraints()->set_that("NO_SUCH_NAME > 1");
  EXPECT_FALSE(ConnectedSample(bundle, 5).ok());
  EXPECT_FALSE(ConnectedSample(bundle, 0).ok());
}

// A recording of three variables in which TILE alone, then PAD alone, is varied.
class VariablesWithoutEffectTest : public testing::Test {
 protected:
  VariablesWithoutEffectTest() {
    for (const char* name : {"TILE", "PAD", "STAGES"}) recording_.header.add_variables()->set_name(name);
  }

  v1::RecordedVariant& Add(int tile, int pad, const std::string& cubin, int grid = 8) {
    v1::RecordedVariant& record = recording_.variants.emplace_back();
    *record.mutable_variant()->mutable_values() = {};
    (*record.mutable_variant()->mutable_values())["TILE"] = tile;
    (*record.mutable_variant()->mutable_values())["PAD"] = pad;
    (*record.mutable_variant()->mutable_values())["STAGES"] = 1;
    record.set_cubin_hash(cubin);
    record.mutable_evidence()->add_launches()->mutable_geometry()->mutable_grid()->set_x(grid);
    return record;
  }

  Recording recording_;
};

TEST_F(VariablesWithoutEffectTest, NamesAVariableThatChangesNothing) {
  Add(64, 0, "one");
  Add(32, 0, "two");
  Add(64, 8, "one");
  Add(32, 8, "two");
  EXPECT_THAT(VariablesWithoutEffect(recording_), ElementsAre("PAD"));
}

TEST_F(VariablesWithoutEffectTest, IsContentWithOneDifferenceInCodeOrGeometry) {
  Add(64, 0, "one");
  Add(32, 0, "one");
  Add(64, 8, "one");
  EXPECT_THAT(VariablesWithoutEffect(recording_), ElementsAre("TILE", "PAD"));
  Add(128, 0, "one", 4);  // another grid
  EXPECT_THAT(VariablesWithoutEffect(recording_), ElementsAre("PAD"));
  Add(128, 8, "other", 4);
  EXPECT_THAT(VariablesWithoutEffect(recording_), IsEmpty());
}

TEST_F(VariablesWithoutEffectTest, HoldsNothingAgainstAVariableThatWasNeverVariedAlone) {
  Add(64, 0, "one");
  Add(32, 8, "one");
  EXPECT_THAT(VariablesWithoutEffect(recording_), IsEmpty());
}

TEST_F(VariablesWithoutEffectTest, DoesNotLookAtVariantsThatFailed) {
  Add(64, 0, "one");
  Add(32, 0, "one");
  Add(128, 0, "").mutable_failure()->set_check(v1::CHECK_COMPILE);
  EXPECT_THAT(VariablesWithoutEffect(recording_), ElementsAre("TILE"));
}

}  // namespace
}  // namespace pawl
