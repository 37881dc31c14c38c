#include "profiles/profile_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTree[] = R"([[rule]]
name = "cold"
phase = "memory"
when = ["l1_hit_rate < 10"]
finding = "L1 {l1_hit_rate}"
severity = "0.5"
advice = "x"
source = "y"
)";

class ProfileSetTest : public testing::Test {
 protected:
  ProfileSetTest() {
    std::string pattern = testing::TempDir() + "/profiles-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ProfileSetTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string Error() {
    const absl::StatusOr<ProfileSet> set = ProfileSet::Load(folder_);
    return set.ok() ? "no error" : std::string(set.status().message());
  }

  std::filesystem::path folder_;
};

TEST_F(ProfileSetTest, TakesTheFilesThatAreThereAndKeepsTheOthers) {
  Write("decision_tree.toml", kTree);
  const absl::StatusOr<ProfileSet> set = ProfileSet::Load(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->tree.rules().size(), 1u);
  EXPECT_EQ(set->tree.rules()[0].name, "cold");
  EXPECT_EQ(set->metrics.all().size(), Metrics::Default().all().size());
  EXPECT_EQ(set->gates.total_every(), Gates::Default().total_every());
}

TEST_F(ProfileSetTest, LetsRulesUseTheFoldersOwnMetrics) {
  Write("metrics.toml", R"([[metric]]
name = "l1_hit_rate"
ncu = "l1tex__t_sector_hit_rate.pct"
meaning = "x"
[[metric]]
name = "l1_miss_rate"
derive = "100 - l1_hit_rate"
meaning = "x"
)");
  Write("decision_tree.toml", absl::StrCat(kTree, R"([[rule]]
name = "misses"
phase = "memory"
when = ["l1_miss_rate > 60"]
finding = "L1 misses {l1_miss_rate}"
severity = "0.5"
advice = "x"
source = "y"
)"));
  const absl::StatusOr<ProfileSet> set = ProfileSet::Load(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  // Evidence that was stored before the metric was defined.
  v1::Evidence evidence;
  (*evidence.add_launches()->mutable_metrics())["l1_hit_rate"] = 30;
  const std::vector<v1::Finding> findings = set->tree.Diagnose(evidence, {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text(), "L1 misses 70");
}

TEST_F(ProfileSetTest, RefusesMetricsThatTheBuiltInRulesCanNotWorkWith) {
  Write("metrics.toml", "[[metric]]\nname = \"waves\"\ngiven = true\nmeaning = \"x\"\n");
  EXPECT_THAT(Error(), AllOf(HasSubstr("built in"), HasSubstr("unknown metric \"bank_conflict_share\"")));
}

TEST_F(ProfileSetTest, ReportsMistakesWithFileAndLine) {
  Write("decision_tree.toml", "# nothing\n");
  EXPECT_THAT(Error(), HasSubstr(absl::StrCat((folder_ / "decision_tree.toml").string(), ":1: no [[rule]]")));
  std::filesystem::remove(folder_ / "decision_tree.toml");
  Write("gates.toml", "[total]\nevery = -1\n");
  EXPECT_THAT(Error(), HasSubstr(absl::StrCat((folder_ / "gates.toml").string(), ":2: [total]: \"every\" = -1")));
}

TEST_F(ProfileSetTest, RefusesAFolderWithNoneOfTheFiles) {
  Write("decisiontree.toml", kTree);
  EXPECT_EQ(ProfileSet::Load(folder_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error(), HasSubstr("has no metrics.toml, decision_tree.toml or gates.toml"));
  EXPECT_EQ(ProfileSet::Load(folder_ / "elsewhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(ProfileSetDefault, IsWhatWasBuiltIn) {
  EXPECT_EQ(ProfileSet::Default().tree.rules().size(), DecisionTree::Default().rules().size());
  EXPECT_EQ(ProfileSet::Default().gates.all().size(), 14u);
}

}  // namespace
}  // namespace pawl
