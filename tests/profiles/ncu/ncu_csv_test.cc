#include "profiles/ncu/ncu_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/ncu/csv_rows.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The least that is a raw page: the columns every page has, and the given ones.
std::string Page(const std::string& names, const std::string& units, const std::string& rows) {
  return "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\"," + names + "\n\"\",\"\",\"\",\"\"," + units + "\n" +
         rows;
}

std::string Row(const std::string& cells) { return "\"0\",\"k(int *)\",\"(32, 1, 1)\",\"(2, 1, 1)\"," + cells + "\n"; }

std::string ErrorOf(const std::string& csv) {
  const auto kernels = ReadNcuRaw(csv);
  return kernels.ok() ? "no error" : std::string(kernels.status().message());
}

TEST(NcuRaw, ReadsEveryKernelOfTheFullSet) {
  const auto kernels = ReadNcuRaw(Golden("zoo_raw_full.csv"));
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 11u);
  const NcuKernel& conflict = (*kernels)[1];
  EXPECT_EQ(conflict.id, 1);
  EXPECT_EQ(conflict.name, "transpose_conflict(const float *, float *, int)");
  EXPECT_EQ(conflict.block, "(32, 8, 1)");
  EXPECT_EQ(conflict.grid, "(256, 256, 1)");
  EXPECT_EQ(conflict.values.at("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"), 65730183);
  EXPECT_EQ(conflict.values.at("gpu__time_duration.sum"), 328352);
  EXPECT_EQ(conflict.units.at("gpu__time_duration.sum"), "ns");
  EXPECT_EQ(conflict.values.at("launch__waves_per_multiprocessor"), 62.06);
  EXPECT_EQ(conflict.texts.at("device__attribute_display_name"), "NVIDIA H200");
}

TEST(NcuRaw, TakesMissingValuesForMissingAndNotForZero) {
  const auto kernels = ReadNcuRaw(Golden("zoo_raw_full.csv"));
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  for (const auto& [id, column] : {std::pair(0, "sass__inst_executed_register_spilling_mem_local"),     // no data
                                   std::pair(0, "derived_tempMetric4"),                                 // nan
                                   std::pair(0, "SM_B.TriageCompute.l1tex__t_sector_hit_rate.pct")}) {  // empty
    EXPECT_FALSE(kernels->at(id).values.contains(column)) << column;
    EXPECT_FALSE(kernels->at(id).texts.contains(column)) << column;
  }
  const auto page =
      ReadNcuRaw(Page("\"a\",\"b\",\"c\",\"d\"", "\"%\",\"%\",\"%\",\"%\"", Row("\"n/a\",\"NaN\",\"inf\",\"0\"")));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->front().values, (std::map<std::string, double>{{"ID", 0}, {"d", 0}}));
}

TEST(NcuRaw, PassesOverTheLinesOfALogFile) {
  const auto log = ReadNcuRaw(Golden("zoo_raw_small_logfile.csv"));
  const auto plain = ReadNcuRaw(Golden("zoo_raw_small.csv"));
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(plain.ok()) << plain.status();
  ASSERT_EQ(log->size(), plain->size());
  EXPECT_EQ(log->back().values.size(), plain->back().values.size());
  EXPECT_EQ(log->back().name, plain->back().name);
  const auto later =
      ReadNcuRaw("result: \"fine\n" + Page("\"a\"", "\"%\"", Row("\"1\"") + "==PROF== Disconnected\n" + Row("\"2\"")));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->size(), 2u);
}

TEST(NcuRaw, ReadsQuotesAndLineBreaksInsideCells) {
  const auto page = ReadNcuRaw(Page("\"a\"", "\"\"", Row("\"say \"\"x\"\",\r\nthen\"") + Row("plain")));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->at(0).texts.at("a"), "say \"x\",\r\nthen");
  EXPECT_EQ(page->at(1).texts.at("a"), "plain");
}

TEST(NcuRaw, ReadsWindowsLineEndsAndAFileWithoutALastLineBreak) {
  std::string csv = Page("\"a\",\"b\"", "\"%\",\"\"", Row("\"1\",\"2\""));
  csv.pop_back();
  for (size_t at = 0; (at = csv.find('\n', at)) != csv.npos; at += 2) csv.insert(at, "\r");
  const auto page = ReadNcuRaw(csv);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->at(0).values.at("b"), 2);
}

TEST(NcuRaw, RefusesAUnitItDoesNotKnowWithItsColumn) {
  for (const char* unit : {"us", "Kbyte", "furlong"}) {
    EXPECT_THAT(ErrorOf(Page("\"a\",\"b__b.sum\"", "\"%\",\"" + std::string(unit) + "\"", Row("\"1\",\"2\""))),
                AllOf(HasSubstr("b__b.sum"), HasSubstr(unit), HasSubstr("--print-units base"), HasSubstr("line 2")));
  }
}

TEST(NcuRaw, RefusesTextWhereAColumnHasAUnit) {
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"ns\"", Row("\"12x\""))),
              AllOf(HasSubstr("column a"), HasSubstr("12x"), HasSubstr("line 3")));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"ns\"", Row("\"1.234,5\""))), HasSubstr("LC_ALL=C"));
}

TEST(NcuRaw, SaysWhenNoKernelWasProfiledAndWhatNcuSaidAboutIt) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no header"));
  EXPECT_THAT(ErrorOf("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n==WARNING== x\n"),
              AllOf(HasSubstr("ERR_NVGPUCTRPERM"), HasSubstr("no header")));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", "")), HasSubstr("no row for any kernel"));
  EXPECT_EQ(ReadNcuRaw(Page("\"a\"", "\"%\"", "")).status().code(), absl::StatusCode::kNotFound);
}

TEST(NcuRaw, RefusesDamagedFiles) {
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", Row("\"1\",\"2\""))),
              AllOf(HasSubstr("line 3"), HasSubstr("6 columns where the header has 5")));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", Row("\"1"))), AllOf(HasSubstr("line 3"), HasSubstr("never closed")));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", Row("\"1\"2"))), HasSubstr("after a closing quote"));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", Row("1\"2"))), HasSubstr("middle of a cell"));
  EXPECT_THAT(ErrorOf("\"ID\",\"Kernel Name\"\n"), HasSubstr("Block Size"));
  EXPECT_THAT(ErrorOf("\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\"\n" + Row("\"1\"")),
              HasSubstr("5 columns where the header has 4"));
  EXPECT_THAT(ErrorOf("\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"a\"\n" + Row("\"1\"")),
              HasSubstr("row of units"));
  EXPECT_THAT(ErrorOf(Page("\"a\"", "\"%\"", "\"x\",\"k\",\"\",\"\",\"1\"\n")), HasSubstr("kernel ID \"x\""));
}

TEST(NcuRaw, NeverTakesACutFileForAWholeOne) {
  const std::string whole = Golden("zoo_raw_small.csv");
  ASSERT_GT(whole.size(), 1000u);
  for (size_t size = 0; size < whole.size(); size += 97) {
    const auto kernels = ReadNcuRaw(whole.substr(0, size));
    if (!kernels.ok()) continue;
    // Only a cut between two rows can't be told.
    EXPECT_TRUE(whole[size] == '\n' || whole[size - 1] == '\n') << size;
    EXPECT_LT(kernels->size(), 11u);
  }
}

TEST(NcuCell, ReadsNumbersWithThousandsSeparators) {
  EXPECT_EQ(ParseNumber("1,048,576"), 1048576);
  EXPECT_EQ(ParseNumber("3,626,333,033,303.33"), 3626333033303.33);
  EXPECT_EQ(ParseNumber("-12,345.5"), -12345.5);
  EXPECT_EQ(ParseNumber("0.00"), 0);
  EXPECT_EQ(ParseNumber("1e3"), 1000);
  for (const char* bad : {"", "1,23", ",123", "1,,234", "1234,567", "1,2345", "1.234,567", "1.2.3", "x", "(2, 1, 1)",
                          "1 2", "0x10", "1,23e4"}) {
    EXPECT_EQ(ParseNumber(bad), std::nullopt) << bad;
  }
}

TEST(NcuGpu, IsReadFromTheDeviceColumns) {
  const auto kernels = ReadNcuRaw(Golden("zoo_raw_small.csv"));
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const v1::GpuInfo gpu = GpuOf(kernels->front());
  EXPECT_EQ(gpu.name(), "NVIDIA H200");
  EXPECT_EQ(gpu.sm_count(), 132);
  EXPECT_EQ(gpu.shared_per_block_optin(), 232448);
  EXPECT_EQ(gpu.l2_bytes(), 62914560);
}

TEST(NcuDetails, GivesAdviceWithItsEstimateByKernel) {
  const auto advice = ReadNcuDetails(Golden("zoo_details_full.csv"));
  ASSERT_TRUE(advice.ok()) << advice.status();
  ASSERT_EQ(advice->size(), 11u);
  const auto of = [&](int id, const std::string& rule) -> v1::Advice {
    for (const v1::Advice& one : advice->at(id)) {
      if (one.rule() == rule) return one;
    }
    ADD_FAILURE() << "no " << rule;
    return {};
  };
  EXPECT_EQ(of(0, "LaunchConfiguration").estimated_speedup_percent(), 98.48);
  EXPECT_EQ(of(0, "LaunchConfiguration").estimate_scope(), "global");
  EXPECT_THAT(of(0, "LaunchConfiguration").text(), HasSubstr("only 2 blocks"));
  EXPECT_EQ(of(1, "SharedMemoryConflicts").estimated_speedup_percent(), 86.23);
  EXPECT_EQ(of(8, "ThreadDivergence").estimated_speedup_percent(), 46.39);
  EXPECT_EQ(of(0, "IssueSlotUtilization").estimate_scope(), "local");
  EXPECT_EQ(of(0, "SOLBottleneck").estimated_speedup_percent(), 0);
  for (const auto& [id, all] : *advice) {
    for (const v1::Advice& one : all) EXPECT_NE(one.rule(), "SOLFPRoofline") << "INF rules are comments";
  }
}

TEST(NcuDetails, RefusesOtherPagesAndDamagedFiles) {
  EXPECT_THAT(std::string(ReadNcuDetails(Golden("zoo_raw_small.csv")).status().message()),
              HasSubstr("not ncu's details page"));
  EXPECT_FALSE(ReadNcuDetails("").ok());
  const std::string whole = Golden("zoo_details_full.csv");
  EXPECT_EQ(ReadNcuDetails(whole.substr(0, whole.find('\n') + 1)).status().code(), absl::StatusCode::kNotFound);
  const auto cut = ReadNcuDetails(whole.substr(0, whole.size() - 9));
  EXPECT_FALSE(cut.ok());
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("line 1051"));
}

}  // namespace
}  // namespace pawl
