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
