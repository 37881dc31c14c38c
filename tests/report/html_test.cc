#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/pages.h"
#include "tests/instrumented.h"
#include "tests/report/made_report.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Every element is closed by its own end, in order: what a browser mends in silence is our mistake.
void ExpectWellFormed(const std::string& page) {
  static const std::regex kTag("<(/?)([a-zA-Z0-9]+)([^<>]*)>");
  std::vector<std::string> open;
  for (std::sregex_iterator at(page.begin(), page.end(), kTag), end; at != end; ++at) {
    const std::string name = (*at)[2], rest = (*at)[3];
    if (name == "meta" || (!rest.empty() && rest.back() == '/')) continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_THAT(open, testing::IsEmpty());
}

TEST(HtmlPageTest, HasEverySectionWithContent) {
  const std::string page = HtmlPage(RecordedReport());
  for (const char* id : {"summary", "journey", "path", "roofline", "speed-of-light", "before-after", "reverted",
                         "sizes", "stages", "cost", "environment", "next", "patterns", "rebuild"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("<section id=\"", id, "\">")));
    EXPECT_THAT(page, HasSubstr(absl::StrCat("<a href=\"#", id, "\">")));
  }
  EXPECT_EQ(Count(page, "<svg "), 6) << "journey, roofline and bars, each wide and narrow";
  EXPECT_THAT(page, HasSubstr("bank_<wbr/>conflict_<wbr/>share"));
  EXPECT_THAT(page, HasSubstr("occupancy"));
  EXPECT_THAT(page, HasSubstr("pawl best 1 --output winner"));
  ExpectWellFormed(page);
}

TEST(HtmlPageTest, NeedsNothingElseAndRunsNothing) {
  const std::string page = HtmlPage(RecordedReport());
  for (const char* foreign : {"<script", "<link", "src=", "url(", "@import", "http://", "https://", " on"}) {
    if (std::string(foreign) == " on") {
      EXPECT_FALSE(std::regex_search(page, std::regex("<[^>]* on[a-z]+="))) << "a handler";
    } else {
      EXPECT_THAT(page, Not(HasSubstr(foreign)));
    }
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(HtmlPageTest, MarksEachIterationOnceWithItsVerdict) {
  const v1::Report report = RecordedReport();
  const std::string page = HtmlPage(report);
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.verdict() != v1::KEPT) continue;
    const std::string title = absl::StrCat("<title>iteration ", iteration.number(), ", kept: ");
    EXPECT_EQ(Count(page, title), 2) << title;
  }
}

TEST(HtmlPageTest, SaysHowTheRooflineCountsTraffic) {
  v1::Report report = RecordedReport();
  EXPECT_THAT(HtmlPage(report), HasSubstr("section says must move, for every point"));
  EXPECT_THAT(HtmlPage(report), HasSubstr("floating-point operations per byte that must move"));
  for (v1::RooflinePoint& point : *report.mutable_roofline()->mutable_points()) point.set_counted(true);
  EXPECT_THAT(HtmlPage(report), HasSubstr("DRAM traffic that ncu counted, for every point"));
  EXPECT_THAT(HtmlPage(report), HasSubstr("floating-point operations per byte of DRAM traffic"));
}

TEST(HtmlPageTest, SetsVerdictsApartByWordAndClass) {
  v1::Report report = RecordedReport();
  v1::Iteration& rejected = *report.mutable_iterations(report.iterations_size() - 1);
  rejected.set_verdict(v1::REJECTED);
  rejected.clear_speedup_over_baseline();
  report.mutable_campaign()->set_state(v1::RUNNING);
  const std::string page = HtmlPage(report);
  EXPECT_THAT(page, HasSubstr("<span class=\"reverted\">reverted</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"bad\">rejected</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"running\">running"));
  EXPECT_THAT(page, HasSubstr("<circle class=\"kept\"")) << "a disc";
  EXPECT_THAT(page, HasSubstr("<path class=\"rejected\"")) << "a cross";
}

TEST(HtmlPageTest, GivesEveryTimeAZone) {
  const std::string page = HtmlPage(RecordedReport());
  static const std::regex kTime("[0-9]{2}:[0-9]{2}:[0-9]{2}( UTC)?");
  int times = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), kTime), end; at != end; ++at, ++times) {
    EXPECT_EQ((*at)[1], " UTC") << at->str();
  }
  EXPECT_GT(times, 1);
}

TEST(HtmlPageTest, LeavesOutWhatTheRecordingLacksAndSaysHowMuch) {
  v1::Report report = RecordedReport();
  const std::string before = HtmlPage(report);
  EXPECT_THAT(before, Not(HasSubstr("the recording lacks")));
  for (int i = 0; i < 3; ++i) {
    v1::Iteration& lacking = *report.add_iterations();
    lacking.set_number(41 + i);
    lacking.mutable_change()->set_variable("NOT_RECORDED");
    lacking.set_verdict(v1::REJECTED);
    lacking.set_untried(true);
  }
  report.mutable_campaign()->mutable_counts()->set_untried(3);
  const std::string page = HtmlPage(report);
  EXPECT_THAT(page, Not(HasSubstr("NOT_RECORDED")));
  EXPECT_THAT(page, HasSubstr("40: 12 kept, 28 reverted, 0 rejected; the recording lacks 3 others"));
  EXPECT_THAT(page, HasSubstr("3 changes that the recording lacks are left out"));
}

TEST(HtmlPageTest, EscapesWhateverUsersWrote) {
  const std::string evil = "<script>alert(\"1\")</script>'&\x01";
  v1::Report report = RecordedReport();
  report.set_summary(evil);
  report.set_host(evil);
  report.set_build(evil);
  report.add_rebuild(evil);
  v1::Campaign& campaign = *report.mutable_campaign();
  campaign.set_bundle(evil);
  campaign.set_message(evil);
  campaign.set_baseline(evil);
  campaign.set_device(evil);
  campaign.add_roof(evil);
  campaign.mutable_spec()->mutable_goal()->set_size(evil);
  for (v1::Iteration& iteration : *report.mutable_iterations()) {
    iteration.set_reason(evil);
    iteration.mutable_change()->mutable_source()->set_name(evil);
    iteration.mutable_change()->mutable_source()->set_patch("+" + evil + "\n-" + evil + "\n" + evil);
    iteration.set_author(evil);
    iteration.set_why(evil);
    iteration.mutable_finding()->set_rule(evil);
    iteration.mutable_prediction()->set_metric(evil);
    (*iteration.mutable_variant())[evil] = 1;
  }
  for (v1::SizeTime& size : *report.mutable_sizes()) size.set_size(evil);
  for (v1::Finding& finding : *report.mutable_findings()) finding.set_text(evil), finding.set_advice(evil);
  for (v1::RankedChange& next : *report.mutable_next()) next.mutable_change()->set_variable(evil);
  for (v1::BeforeAfter& row : *report.mutable_speed_of_light()) row.set_metric(evil), row.set_meaning(evil);
  for (v1::Pattern& pattern : *report.mutable_patterns()) pattern.set_rule(evil);
  const std::string page = HtmlPage(report);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\x01")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;?"));
  ExpectWellFormed(page);
}

TEST(HtmlPageTest, ShowsEditsWithAuthorReasonVerdictCostAndDiff) {
  const std::string page = HtmlPage(EditedReport());
  EXPECT_THAT(page, HasSubstr("<section id=\"edits\">"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#edits\">"));
  EXPECT_THAT(page,
              HasSubstr("<span class=\"code\">wider loads</span></td><td>codex 1</td><td>more bytes in flight</td>"
                        "<td><span class=\"good\">kept</span></td>"));
  EXPECT_THAT(page, HasSubstr("<details open=\"open\"><summary>iteration 1, kept: wider loads</summary>\n"
                              "<pre class=\"difference\" tabindex=\"0\"><span>--- a/attention.cu</span>"
                              "<span>+++ b/attention.cu</span><span class=\"dim\">@@ -1,2 +1,2 @@</span>"
                              "<span> a&lt;b&gt;</span><del>-old</del><ins>+new</ins></pre></details>"));
  EXPECT_THAT(page, HasSubstr("<details><summary>iteration 2, reverted: fewer registers</summary>"));
  EXPECT_THAT(page, HasSubstr("<small class=\"under\">proposed by codex 1: more bytes in flight</small>"));
  EXPECT_THAT(page, HasSubstr("proposed by codex 1</title>")) << "in the chart";
  EXPECT_THAT(page, HasSubstr("<tr><td>codex 1</td><td class=\"number\">1</td><td class=\"number\">1</td>"))
      << "who proposed what";
  ExpectWellFormed(page);
  EXPECT_THAT(HtmlPage(RecordedReport()), Not(HasSubstr("<section id=\"edits\">")));
}

TEST(HtmlPageTest, LeavesOutDiffsThatThePageHasNoRoomFor) {
  v1::Report report = EditedReport();
  report.mutable_iterations(2)->mutable_change()->mutable_source()->set_patch(std::string(1 << 20, '+'));
  const std::string page = HtmlPage(report);
  EXPECT_THAT(page, HasSubstr("The page has no room for 1 of the diffs."));
  EXPECT_THAT(page, HasSubstr("<summary>iteration 1, kept"));
  EXPECT_THAT(page, Not(HasSubstr("<summary>iteration 2, reverted")));
  EXPECT_THAT(page, HasSubstr("<span class=\"code\">fewer registers</span>"));
}

TEST(HtmlPageTest, SaysWhatWasWrongWithAStartThatDidNotPass) {
  const std::string page = HtmlPage(FailedReport());
  EXPECT_THAT(page, HasSubstr("failed: the start variant did not pass"));
  EXPECT_THAT(page, HasSubstr("out differs by 4.72 at element 17, 0.01 is allowed"));
  EXPECT_EQ(Count(page, "<section "), 14);
  EXPECT_EQ(Count(page, "<svg "), 0);
  ExpectWellFormed(page);
}

TEST(HtmlPageTest, IsAPageOfACampaignThatHasDoneNothingToo) {
  const std::string page = HtmlPage(v1::Report());
  EXPECT_EQ(Count(page, "<section "), 14);
  ExpectWellFormed(page);
}

TEST(HtmlPageTest, DoesWithoutBaselineAndCounters) {
  v1::Report report = RecordedReport();
  report.mutable_campaign()->clear_baseline_us();
  report.mutable_campaign()->clear_baseline();
  report.clear_speed_of_light();
  report.clear_changes();
  report.clear_roofline();
  report.clear_findings();
  const std::string page = HtmlPage(report);
  EXPECT_THAT(page, HasSubstr("the start variant"));
  EXPECT_THAT(page, HasSubstr("start = baseline"));
  EXPECT_THAT(page, HasSubstr("No percentages of peak: the device has no counters."));
  EXPECT_THAT(page, Not(HasSubstr("over the baseline</dt>")));
  EXPECT_EQ(Count(page, "<svg "), 2);
  ExpectWellFormed(page);
}

TEST(HtmlPageTest, TakesTenThousandIterations) {
  const v1::Report report = LongReport(10'000);
  const std::clock_t begin = std::clock();
  const std::string page = HtmlPage(report);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 2 * kSlowdown) << "of CPU";
  EXPECT_LT(page.size(), 4u << 20) << "points that lie on one another are drawn once";
  EXPECT_GT(Count(page, "<circle class=\"kept\""), 100);
  EXPECT_THAT(page, HasSubstr("pawl history campaigns/1 --all"));
}

TEST(HtmlPageTest, DrawsWhateverNumbersItIsGiven) {
  v1::Report report = RecordedReport();
  report.mutable_iterations(1)->set_speedup_over_baseline(std::numeric_limits<double>::infinity());
  report.mutable_iterations(2)->set_speedup_over_baseline(std::nan(""));
  report.mutable_iterations(3)->set_speedup_over_baseline(1e-300);
  report.mutable_roofline()->mutable_points(0)->set_intensity(0);
  report.mutable_roofline()->mutable_points(0)->set_gflop_s(std::numeric_limits<double>::infinity());
  report.mutable_roofline()->set_peak_gflop_s(-1);
  const std::string page = HtmlPage(report);
  EXPECT_FALSE(std::regex_search(page, std::regex("(cx|cy|x1|y1|x2|y2)=\"-?(nan|inf)")));
  ExpectWellFormed(page);
}

}  // namespace
}  // namespace pawl
