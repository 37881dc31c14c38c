#include "bench/public_spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/measured_campaign.h"
#include "orchestrator/engine/search/tree_chooser.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PublicSpaces : public testing::Test {
 protected:
  PublicSpaces() : folder_(fs::path(testing::TempDir()) / absl::StrCat("public_spaces_", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PublicSpaces() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  absl::StatusOr<std::vector<PublicSpace>> Read() { return ReadPublicSpaces(folder_); }
  std::string Problem() {
    const auto spaces = Read();
    return spaces.ok() ? "" : std::string(spaces.status().message());
  }

  const fs::path folder_;
};

TEST_F(PublicSpaces, AreEveryTableOfAFolderWithoutAList) {
  Write("stencil_L4.csv", "X,LAYOUT,time_ms,ok\n1,rows,2.0,1\n2,rows,1.0,1\n1,columns,4.0,1\n2,columns,0,0\n");
  const std::vector<PublicSpace> spaces = Read().value();
  ASSERT_EQ(spaces.size(), 1u);
  EXPECT_EQ(spaces[0].kernel, "stencil");
  EXPECT_EQ(spaces[0].space.name, "stencil (L4)");
  EXPECT_EQ(spaces[0].space.entries.size(), 4u);
  EXPECT_EQ(spaces[0].space.bundle.variables(1).values_size(), 2);
  EXPECT_NEAR(spaces[0].space.best, 0, 1e-12);
  EXPECT_FALSE(spaces[0].space.entries[3].ok);
}

TEST_F(PublicSpaces, HaveTheConstraintsAndPeersOfTheList) {
  Write("one.csv", "X,Y,K,time_ms,ok\n1,1,32,2.0,1\n2,1,32,1.0,1\n1,2,32,4.0,1\n");
  Write("spaces.toml",
        "[[space]]\nname = \"copy\"\ngpu = \"L4\"\nfile = \"one.csv\"\nconstraints = [\"X * Y * K < 128\"]\n"
        "kernel_tuner = { greedy = 7, annealing = 9 }\n");
  const std::vector<PublicSpace> spaces = Read().value();
  ASSERT_EQ(spaces.size(), 1u);
  EXPECT_EQ(spaces[0].peers.size(), 2u);
  EXPECT_EQ(spaces[0].space.bundle.variables_size(), 3) << "K does not vary, but the constraint names it";
}

TEST_F(PublicSpaces, SayWhatIsWrongWithAFile) {
  EXPECT_THAT(Problem(), HasSubstr("has neither spaces.toml nor CSV or T4 files"));
  Write("a_L4.csv", "X,time,ok\n1,1,1\n");
  EXPECT_THAT(Problem(), HasSubstr("a_L4.csv:1: expected the variables' names, then time_ms and ok"));
  Write("a_L4.csv", "X,time_ms,ok\n1,1,1\n2,1\n");
  EXPECT_THAT(Problem(), HasSubstr("a_L4.csv:3: expected 3 cells, found 2"));
  Write("a_L4.csv", "X,time_ms,ok\n1,0,0\n2,1,0\n");
  EXPECT_THAT(Problem(), HasSubstr("no variant has a time"));
}

TEST_F(PublicSpaces, HaveMoreThanOneVariant) {
  Write("a_L4.csv", "X,time_ms,ok\n1,1,1\n");
  EXPECT_THAT(Problem(), HasSubstr("a (L4): there is nothing to search in 1 variant"));
}

TEST_F(PublicSpaces, HaveConstraintsOverTheirVariables) {
  Write("one.csv", "X,time_ms,ok\n1,2.0,1\n2,1.0,1\n");
  Write("spaces.toml",
        "[[space]]\nname = \"copy\"\ngpu = \"L4\"\nfile = \"one.csv\"\nconstraints = [\"WIDTH < 128\"]\n");
  EXPECT_THAT(Problem(), AllOf(HasSubstr("copy (L4)"), HasSubstr("WIDTH")));
}

TEST_F(PublicSpaces, AreSearchedToTheirEnd) {
  std::string text = "X,Y,time_ms,ok\n";
  for (int x = 1; x <= 16; x *= 2) {
    for (int y = 1; y <= 16; y *= 2) {
      absl::StrAppend(&text, x, ",", y, ",", 1 + (x * 7 + y * 13) % 11, ",", x != 4 ? 1 : 0, "\n");
    }
  }
  Write("rough_L4.csv", text);
  const std::vector<PublicSpace> spaces = Read().value();
  const MeasuredSpace& space = spaces[0].space;
  TreeSettings settings;
  settings.ranking.exists = [&](const v1::Variant& variant) { return space.Find(variant.values()) != nullptr; };
  const TreeChooser chooser(DecisionTree::Default(), settings);
  int iterations = 0;
  double best = -INFINITY;
  RunMeasuredCampaign(space, space.entries[0], chooser, 1000, 1, {},
                      [&](const CampaignState& campaign, const v1::Iteration&) {
                        best = space.Find(campaign.best()->variant())->log_speed;
                        return ++iterations < 1000;
                      });
  EXPECT_LE(iterations, 25) << "no variant is tried twice";
  EXPECT_NEAR(best, space.best, 1e-9);
}

}  // namespace
}  // namespace pawl
