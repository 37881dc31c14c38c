#include <gtest/gtest.h>

#include "base/names/utf8.h"
#include "orchestrator/core/committer.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

TEST(LogLineTest, NamesCampaignAndIterationInOneLineAnEvent) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "two\nlines\r\nand a half").ok());
  worker.RunAll();
  v1::VerifyIterationRequest verify;
  verify.set_name(campaign + "/iterations/0");
  ASSERT_TRUE(world->Verify(verify).ok());
  worker.RunAll();
  for (const v1::Event& event : world.Events(campaign)) {
    const std::string line = LogLine(event, 3);
    EXPECT_EQ(line.find(campaign), 0u) << line;
    EXPECT_EQ(line.find_first_of("\r\n"), std::string::npos) << line;
    if (event.has_finished() || event.has_leased() || event.has_lost()) {
      EXPECT_EQ(line.find(campaign + "/iterations/"), 0u) << line;
    }
  }
  EXPECT_EQ(LogLine(world.Events(campaign, v1::Event::kPlanned)[1], 0),
            "campaigns/1/iterations/1 planned: TILE 32 -> 64 from 0, by trial 2");
}

// A log is read on terminals, too.
TEST(LogLineTest, HasNoControlCharactersOfAnEditsName) {
  v1::Event event;
  event.set_campaign("campaigns/1");
  event.mutable_planned()->mutable_change()->mutable_source()->set_name("\x1b]0;owned\x07");
  EXPECT_EQ(LogLine(event, 0), "campaigns/1/iterations/0 planned: edit ?]0;owned?, by trial 0");
}

TEST(ShortenedTest, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abc", 2), "ab");
  EXPECT_EQ(Shortened("abc", 0), "");
  const std::string text =
      "a\xe2\x82\xac"
      "b";  // a, a euro sign of three bytes, b
  EXPECT_EQ(Shortened(text, 1), "a");
  EXPECT_EQ(Shortened(text, 2), "a");
  EXPECT_EQ(Shortened(text, 3), "a");
  EXPECT_EQ(Shortened(text, 4), "a\xe2\x82\xac");
  EXPECT_EQ(Shortened(text, 5), text);
}

}  // namespace
}  // namespace pawl
