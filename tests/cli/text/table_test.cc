#include <gtest/gtest.h>

#include "cli/text/layout.h"

namespace pawl {
namespace {

using Align = Table::Align;

TEST(TableTest, AlignsColumnsByWhatAPersonSees) {
  Table table({{"number", Align::kRight}, {"change"}, {"time", Align::kRight}, {"reason"}});
  table.Add({"0", "start", "20.12 us", "the start"});
  table.Add({"12", "TILE_M 64→16", "3.361 us", "faster"});
  EXPECT_EQ(table.Text(0),
            "number  change            time  reason\n"
            "     0  start         20.12 us  the start\n"
            "    12  TILE_M 64→16  3.361 us  faster\n");
}

TEST(TableTest, CutsAtTheTerminalsEdge) {
  Table table({{"a"}, {"reason"}});
  table.Add({"1", "a very long reason"});
  EXPECT_EQ(table.Text(10), "a  reason\n1  a very…\n");
  EXPECT_EQ(table.Text(21), "a  reason\n1  a very long reason\n");
}

TEST(TableTest, LeavesOutWhatSaysLeastBeforeItCuts) {
  Table table({{"verdict"},
               {"start", Align::kRight, /*dispensable=*/2},
               {"time", Align::kRight},
               {"reason", Align::kLeft, /*dispensable=*/1, /*shrinks_to=*/6}});
  table.Add({"kept", "1.000x", "20.12 us", "a long reason"});
  EXPECT_EQ(table.Text(0), "verdict   start      time  reason\nkept     1.000x  20.12 us  a long reason\n");
  EXPECT_EQ(table.Text(40), table.Text(0));
  EXPECT_EQ(table.Text(35), "verdict   start      time  reason\nkept     1.000x  20.12 us  a long …\n");
  EXPECT_EQ(table.Text(28), "verdict      time  reason\nkept     20.12 us  a long r…\n");
  EXPECT_EQ(table.Text(20), "verdict      time\nkept     20.12 us\n");
  EXPECT_EQ(table.LeftOut(20), (std::vector<std::string>{"start", "reason"}));
}

TEST(TableTest, ColoursVerdictsWithoutMovingColumns) {
  Table table({{"verdict"}, {"time", Align::kRight}});
  table.Add({"kept", "1 us"});
  table.Add({"rejected", "-"});
  EXPECT_EQ(table.Text(0, /*color=*/true),
            "verdict   time\n\x1b[32mkept\x1b[0m      1 us\n\x1b[31mrejected\x1b[0m     -\n");
}

TEST(TableTest, HasNoTitleLineWithoutTitles) {
  Table table({{""}, {""}});
  table.Add({"a", "b"});
  EXPECT_EQ(table.Text(0), "a  b\n");
}

TEST(TableTest, LetsNoCellMoveTheCursor) {
  Table table({{"reason"}});
  table.Add({"error:\nline 2\033[2J"});
  EXPECT_EQ(table.Text(0), "reason\nerror: line 2?[2J\n");
}

TEST(TableTest, PadsRowsThatAreTooShort) {
  Table table({{"a"}, {"b"}});
  table.Add({"1"});
  EXPECT_EQ(table.Text(0), "a  b\n1\n");
}

TEST(CutTest, CountsCodePointsNotBytes) {
  EXPECT_EQ(DisplayWidth("64→16"), 5);
  EXPECT_EQ(Cut("64→16", 5), "64→16");
  EXPECT_EQ(Cut("64→16", 4), "64→…");
  EXPECT_EQ(Cut("abc", 1), "…");
}

}  // namespace
}  // namespace pawl
