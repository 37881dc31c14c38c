#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "report/pages.h"
#include "report/words.h"
#include "tests/report/made_report.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Slurp(const std::string& path) {
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  return buffer.str();
}

// To write it again: PAWL_GOLDEN=1 tests/report_test.
TEST(MarkdownPageTest, IsThatOfARecordedCampaign) {
  const std::string page = MarkdownPage(RecordedReport());
  if (std::getenv("PAWL_GOLDEN") != nullptr) std::ofstream(GoldenFile("attention.md")) << page;
  EXPECT_EQ(page, Slurp(GoldenFile("attention.md")));
}

TEST(MarkdownPageTest, SaysInTheSummaryWhatAPortfolioGains) {
  v1::Report report = RecordedReport();
  v1::Campaign& campaign = *report.mutable_campaign();
  campaign.set_best(0);
  EXPECT_THAT(MarkdownPage(report), HasSubstr("the start variant: nothing was faster\n"));
  campaign.mutable_portfolio()->add_members()->set_iteration(12);
  campaign.mutable_portfolio()->set_speedup_over_start(1.22);
  const std::string page = MarkdownPage(report);
  EXPECT_THAT(page, HasSubstr("the start variant: nothing was faster over all sizes\n"));
  EXPECT_THAT(page, HasSubstr("1.220x over the start; iteration 12 at every size\n"));
}

TEST(MarkdownPageTest, ShowsEachRatioWithItsOwnTimes) {
  v1::Report report = RecordedReport();
  v1::Campaign& campaign = *report.mutable_campaign();
  campaign.set_start_us(18.62);
  campaign.set_best_us(2.039);
  campaign.set_speedup_over_start(8.555);
  campaign.set_speedup_over_baseline(2.538);
  v1::TotalGain& total = *campaign.mutable_total_gain();
  total.set_iteration(campaign.best());
  total.clear_sizes();
  v1::SizeTime& size = *total.add_sizes();
  size.set_size("main");
  size.set_start_us(18.082);
  size.set_best_us(2.0392);
  total.mutable_beside_baseline()->set_baseline_us(5.508);
  total.mutable_beside_baseline()->set_best_us(2.167);
  // 18.082 / 2.0392 is 8.867: another measurement than the one that gave 8.555.
  EXPECT_THAT(MarkdownPage(report), HasSubstr("- start, in iteration 0: **18.62 us**\n"
                                              "- final, when it was kept: **2.039 us**\n"
                                              "- baseline: **5.508 us (final 2.167 us)**\n"
                                              "- over the start: **8.555x**\n"));
  size.set_start_us(18.5);
  size.set_best_us(2.1625);
  EXPECT_THAT(MarkdownPage(report), HasSubstr("- start: **18.50 us**\n- final: **2.163 us**\n"));
}

TEST(MarkdownPageTest, SaysHowBusyTheGpuWasAndWhatBuildingAheadWasGoodFor) {
  v1::Report report = RecordedReport();
  report.mutable_campaign()->set_gpu_busy(0.431);
  for (const int number : {1, 1, 2}) {
    report.mutable_iterations(number)->add_beside()->set_kind(v1::BesideTime::BUILD_AHEAD);
  }
  report.mutable_iterations(2)->add_beside()->set_kind(v1::BesideTime::SANITIZER);
  report.mutable_iterations(3)->set_built_ahead(true);
  EXPECT_THAT(MarkdownPage(report),
              HasSubstr("The GPU was busy for 43 % of the time (validate, measure, profile). "
                        "Beside other trials 3 variants were built ahead, of which 1 was tried."));
}

// Every way in which a figure of the message may be written.
void AddTexts(double value, std::set<std::string>* texts) {
  for (const double figure : {value, std::exp(value)}) {
    for (const std::string& text : {TimeText(figure), SpeedupText(figure), NumberText(figure), SecondsText(figure),
                                    DollarsText(figure), BytesText(static_cast<int64_t>(std::min(figure, 1e18)))}) {
      texts->insert(text);
    }
  }
  char text[64];
  for (const char* format : {"%.2f", "%.3f", "%+.3f", "%.4f", "%g", "%.0f"}) {
    std::snprintf(text, sizeof text, format, value);
    texts->insert(text);
  }
}

void Collect(const google::protobuf::Message& message, std::set<std::string>* texts) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  using Field = google::protobuf::FieldDescriptor;
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case Field::CPPTYPE_MESSAGE:
          Collect(many ? reflection.GetRepeatedMessage(message, field, i) : reflection.GetMessage(message, field),
                  texts);
          break;
        case Field::CPPTYPE_DOUBLE:
          AddTexts(many ? reflection.GetRepeatedDouble(message, field, i) : reflection.GetDouble(message, field),
                   texts);
          break;
        case Field::CPPTYPE_INT32:
          AddTexts(many ? reflection.GetRepeatedInt32(message, field, i) : reflection.GetInt32(message, field), texts);
          break;
        case Field::CPPTYPE_INT64:
          AddTexts(static_cast<double>(many ? reflection.GetRepeatedInt64(message, field, i)
                                            : reflection.GetInt64(message, field)),
                   texts);
          break;
        case Field::CPPTYPE_STRING:
          texts->insert(many ? reflection.GetRepeatedString(message, field, i) : reflection.GetString(message, field));
          break;
        default:
          break;
      }
    }
  }
}

TEST(MarkdownPageTest, HasNoFigureThatIsNotInTheMessage) {
  const v1::Report report = RecordedReport();
  std::set<std::string> texts;
  Collect(report, &texts);
  for (const v1::Iteration& iteration : report.iterations()) texts.insert(ValuesText(iteration));
  for (const v1::SizeTime& size : report.sizes()) {  // each row has the ratios of its own times
    AddTexts(size.start_us() / size.best_us(), &texts);
    AddTexts(size.baseline_us() / size.best_us(), &texts);
  }
  texts.insert({UtcText(report.campaign().create_time()), UtcText(report.campaign().end_time()), "99 %", "13.0", "9.0",
                "0", "0.000", "0.0000"});  // bounds, CUDA 13000, compute 9.0, a term that is 0
  std::set<std::string> known;
  static const std::regex kNumber("[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?");
  for (const std::string& text : texts) {
    for (std::sregex_iterator at(text.begin(), text.end(), kNumber), end; at != end; ++at) known.insert(at->str());
  }
  const std::string page = MarkdownPage(report);
  int figures = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), kNumber), end; at != end; ++at, ++figures) {
    EXPECT_TRUE(known.contains(at->str()))
        << at->str() << " in " << page.substr(std::max<long>(0, at->position() - 40), 80);
  }
  EXPECT_GT(figures, 200);
}

TEST(MarkdownPageTest, LetsNobodyBreakATableOrAFence) {
  v1::Report report = RecordedReport();
  report.mutable_iterations(report.iterations_size() - 1)->set_verdict(v1::REVERTED);
  report.mutable_iterations(report.iterations_size() - 1)->set_reason("a | b\n# <b>c</b> `d` ![e](f)");
  report.set_build("echo ```` && true");
  const std::string page = MarkdownPage(report);
  EXPECT_THAT(page, HasSubstr("a \\| b \\# \\<b\\>c\\</b\\> \\`d\\` \\!\\[e\\](f) |\n"));
  EXPECT_THAT(page, HasSubstr("`````\necho ```` && true\n`````\n"));
}

TEST(MarkdownPageTest, SaysWhatWasWrongWithAStartThatDidNotPass) {
  const std::string page = MarkdownPage(FailedReport());
  EXPECT_THAT(page, HasSubstr("- state: failed: the start variant did not pass\n"));
  EXPECT_THAT(page, HasSubstr("out differs by 4.72 at element 17, 0.01 is allowed"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace pawl
