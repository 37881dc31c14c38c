#include "tests/report/made_report.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace pawl {

std::string GoldenFile(const std::string& name) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return absl::StrCat(source == nullptr ? "." : source, "/tests/report/golden/", name);
}

v1::Report RecordedReport() {
  std::stringstream json;
  json << std::ifstream(GoldenFile("attention.json")).rdbuf();
  v1::Report report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json.str(), &report).ok());
  return report;
}

v1::Report EditedReport() {
  v1::Report report = RecordedReport();
  const auto edit = [&](int number, v1::Verdict verdict, const char* name, const char* author, const char* why) {
    v1::Iteration& iteration = *report.mutable_iterations(number);
    iteration.set_verdict(verdict);
    iteration.clear_change();
    iteration.mutable_change()->mutable_source()->set_name(name);
    iteration.mutable_change()->mutable_source()->set_patch(
        "--- a/attention.cu\n+++ b/attention.cu\n@@ -1,2 +1,2 @@\n a<b>\n-old\n+new\n");
    iteration.set_author(author);
    iteration.set_why(why);
  };
  edit(1, v1::KEPT, "wider loads", "codex 1", "more bytes in flight");
  edit(2, v1::REVERTED, "fewer registers", "codex 2", "");
  report.mutable_iterations(2)->set_expedition(true);
  report.mutable_iterations(2)->mutable_over_best()->set_result(v1::SAME);
  report.mutable_iterations(2)->set_compared_with(1);
  return report;
}

v1::Report LongReport(int iterations) {
  v1::Report report = RecordedReport();
  const v1::Iteration kept = report.iterations(1);
  v1::Iteration reverted = kept, rejected = kept;
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.verdict() == v1::REVERTED) reverted = iteration;
  }
  rejected.set_verdict(v1::REJECTED);
  rejected.clear_speedup_over_parent();
  rejected.clear_speedup_over_baseline();
  rejected.clear_time_us();
  while (report.iterations_size() < iterations) {
    const int number = report.iterations_size();
    v1::Iteration& iteration = *report.add_iterations();
    iteration = number % 50 == 0 ? kept : number % 7 == 0 ? rejected : reverted;
    iteration.set_number(number);
    if (iteration.speedup_over_baseline() > 0) {
      iteration.set_speedup_over_baseline(1 + 0.5 * std::sin(number) +
                                          (iteration.verdict() == v1::KEPT ? number * 1e-4 : 0));
    }
  }
  report.mutable_campaign()->mutable_counts()->set_tried(iterations - 1);
  return report;
}

v1::Report FailedReport() {
  v1::Report report;
  v1::Campaign& campaign = *report.mutable_campaign();
  campaign.set_name("campaigns/9");
  campaign.set_state(v1::FAILED);
  campaign.set_stop_reason(v1::STOP_REASON_START);
  campaign.set_message("the start variant did not pass");
  campaign.set_bundle("softmax");
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  v1::Iteration& start = *report.add_iterations();
  start.set_number(0);
  start.set_verdict(v1::REJECTED);
  start.set_reason("tolerance: out differs");
  start.mutable_failure()->set_message("out differs by 4.72 at element 17, 0.01 is allowed");
  return report;
}

}  // namespace pawl
