#include "orchestrator/engine/search/single_change.h"

#include <gtest/gtest.h>

#include "orchestrator/engine/search/chooser.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

std::string Text(const v1::Change& change) {
  return change.variable() + " " + std::to_string(change.from()) + "->" + std::to_string(change.to());
}

// The changes that are tried one after another when none of them helps.
std::vector<std::string> AllTried(CampaignScript* script) {
  std::vector<std::string> tried;
  while (const std::optional<Choice> choice = NeighbourChooser().Next(script->state())) {
    tried.push_back(Text(choice->change));
    if (Text(script->Run(Measured(100, 120)).change()) != tried.back()) break;
  }
  return tried;
}

TEST(NeighbourChooserTest, HasNothingBeforeTheStartIsKept) {
  CampaignScript script;
  EXPECT_FALSE(NeighbourChooser().Next(script.state()));
}

TEST(NeighbourChooserTest, TriesNearestValuesFirstUpwardsBeforeDownwards) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  EXPECT_EQ(AllTried(&script), (std::vector<std::string>{"TILE 32->64", "SPLIT 1->2", "TILE 32->16", "SPLIT 1->4"}));
  EXPECT_FALSE(NeighbourChooser().Next(script.state())) << "nothing is left around the start";
}

TEST(NeighbourChooserTest, TriesTheNeighboursOfEveryVariableBeforeAnythingFartherAway) {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_variables(0)->set_start(16);
  bundle.mutable_variables(1)->set_start(2);
  CampaignScript script({}, bundle);
  script.Run(MeasuredStart(100));
  EXPECT_EQ(AllTried(&script), (std::vector<std::string>{"TILE 16->32", "SPLIT 2->4", "SPLIT 2->1", "TILE 16->64"}));
}

TEST(NeighbourChooserTest, StartsFromTheBestAndSaysSo) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 50));  // TILE 64
  const std::optional<Choice> choice = NeighbourChooser().Next(script.state());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->parent, 1);
  EXPECT_EQ(Text(choice->change), "SPLIT 1->2");
  EXPECT_EQ(choice->variant.values().at("TILE"), 64);
  EXPECT_EQ(choice->variant.values().at("SPLIT"), 2);
  EXPECT_EQ(choice->author, "pawl");
  EXPECT_NE(choice->why, "");
}

TEST(NeighbourChooserTest, ListsWhatItPassedOverAndWhy) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Run(Measured(100, 50));  // TILE 64
  script.Run(Measured(50, 60));   // SPLIT 2
  const std::optional<Choice> choice = NeighbourChooser().Next(script.state());
  ASSERT_TRUE(choice);
  EXPECT_EQ(Text(choice->change), "TILE 64->16");
  std::map<std::string, std::string> passed_over;
  for (const v1::PassedOver& passed : choice->passed_over) passed_over[Text(passed.change())] = passed.reason();
  EXPECT_EQ(passed_over,
            (std::map<std::string, std::string>{{"TILE 64->32", "was tried before"},
                                                {"SPLIT 1->2", "was tried before"},
                                                {"SPLIT 1->4", "a constraint forbids it: TILE * SPLIT <= 128"}}));
  script.Run(Measured(50, 60));
  EXPECT_FALSE(NeighbourChooser().Next(script.state())) << "nothing is left around it";
}

TEST(NeighbourChooserTest, DoesNotTryWhatIsBeingTried) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Decide();  // TILE 64 is under way
  EXPECT_EQ(Text(NeighbourChooser().Next(script.state())->change), "SPLIT 1->2");
}

class ChangedTest : public ::testing::Test {
 protected:
  std::optional<v1::Variant> Change(const std::string& variable, int to) {
    v1::Change change;
    change.set_variable(variable);
    change.set_to(to);
    return Changed(script_.state(), parent_, change, &why_);
  }
  ChangedTest() {
    (*parent_.mutable_variant())["TILE"] = 64;
    (*parent_.mutable_variant())["SPLIT"] = 1;
  }
  CampaignScript script_;
  v1::Iteration parent_;
  std::string why_;
};

TEST_F(ChangedTest, ChangesOneVariable) {
  const std::optional<v1::Variant> variant = Change("SPLIT", 2);
  ASSERT_TRUE(variant);
  EXPECT_EQ(variant->values().at("SPLIT"), 2);
  EXPECT_EQ(variant->values().at("TILE"), 64);
  EXPECT_EQ(why_, "");
}

TEST_F(ChangedTest, SaysWhyNot) {
  EXPECT_FALSE(Change("WARPS", 2));
  EXPECT_EQ(why_, "tiny has no variable \"WARPS\"");
  EXPECT_FALSE(Change("SPLIT", 3));
  EXPECT_EQ(why_, "SPLIT has no value 3; its values are 1, 2, 4");
  EXPECT_FALSE(Change("SPLIT", 1));
  EXPECT_EQ(why_, "SPLIT is already 1");
  EXPECT_FALSE(Change("SPLIT", 4));
  EXPECT_EQ(why_, "a constraint forbids it: TILE * SPLIT <= 128");
  v1::Change edit;
  edit.mutable_source()->set_name("unroll");
  EXPECT_FALSE(Changed(script_.state(), parent_, edit, &why_));
  EXPECT_EQ(why_, "tiny has no variable \"\"");
}

TEST(DifferencesTest, CountsVariablesThatDifferOrAreMissing) {
  v1::Variant a, b;
  EXPECT_EQ(Differences(a, b), 0);
  (*a.mutable_values())["TILE"] = 16;
  EXPECT_EQ(Differences(a, b), 1);
  EXPECT_EQ(Differences(b, a), 1);
  (*b.mutable_values())["TILE"] = 16;
  EXPECT_EQ(Differences(a, b), 0);
  (*b.mutable_values())["TILE"] = 32;
  (*b.mutable_values())["SPLIT"] = 2;
  EXPECT_EQ(Differences(a, b), 2);
  EXPECT_EQ(Differences(b, a), 2);
}

}  // namespace
}  // namespace pawl
