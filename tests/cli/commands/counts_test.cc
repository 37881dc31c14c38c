// One campaign has the same counts in every output: those that the engine made. The dashboard's are in
// tests/web/dashboard_test.mjs.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "cli/text/campaign_text.h"
#include "cli/text/differences.h"
#include "cli/text/explanation.h"
#include "report/pages.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "tests/orchestrator/engine/campaign_script.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kCounts[] = "5: 2 kept, 2 reverted, 1 rejected; the recording lacks 2 others";

class CountsTest : public testing::Test {
 protected:
  CountsTest() {
    v1::TrialResult lacking;
    lacking.set_passed_over("not in the recording");
    script_.Run(MeasuredStart(100));
    script_.Run(Measured(100, 90));
    script_.Run(lacking);
    script_.Run(FailedCheck(v1::CHECK_TOLERANCE, "wrong"));
    script_.Run(Measured(90, 80));
    script_.Run(Measured(80, 85));
    script_.Run(lacking);
    script_.Run(Measured(80, 85));
    fake_.campaign = script_.summary();
    fake_.iterations = script_.state().iterations();
  }

  std::string Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--orchestrator", fake_.address()});
    const ProcessResult run = Pawl(arguments, {{"HOME", home_.path().string()}});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }

  CampaignScript script_{v1::CampaignSpec(), WideBundle()};
  FakeOrchestrator fake_;
  const TemporaryFolder home_{"pawl-home-"};
};

TEST_F(CountsTest, AreTheSameInEveryOutput) {
  const std::string& name = fake_.campaign.name();
  EXPECT_THAT(Run({"campaigns"}), ContainsRegex("running .*tiny at [a-z]* +5 +2 "));
  EXPECT_THAT(Run({"show", name}), HasSubstr(std::string("tried      ") + kCounts + "\n"));
  for (const std::string& json : {Run({"campaigns", "--json"}), Run({"show", name, "--json"})}) {
    v1::Campaign campaign;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &campaign).ok()) << json;
    EXPECT_EQ(campaign.counts().tried(), 5);
    EXPECT_EQ(campaign.counts().kept(), 2);
    EXPECT_EQ(campaign.counts().reverted(), 2);
    EXPECT_EQ(campaign.counts().rejected(), 1);
    EXPECT_EQ(campaign.counts().untried(), 2);
  }
  Differences differences;
  differences.Campaigns(fake_.campaign, v1::Campaign());
  const std::string diff = differences.TableText("first", "second", 0);
  for (const char* row :
       {"tried +5 +0", "kept +2 +0", "reverted +2 +0", "rejected +1 +0", "not in the recording +2 +0"}) {
    EXPECT_THAT(diff, ContainsRegex(row));
  }
  v1::Report report;
  *report.mutable_campaign() = fake_.campaign;
  for (const v1::Iteration& iteration : fake_.iterations) *report.add_iterations() = iteration;
  EXPECT_THAT(HtmlPage(report), HasSubstr(kCounts));
  EXPECT_THAT(HtmlPage(report), HasSubstr("2 changes that the recording lacks are left out"));
  EXPECT_THAT(MarkdownPage(report), HasSubstr(std::string("changes tried: ") + kCounts + "\n"));
  EXPECT_THAT(CampaignExplanation(fake_.campaign, fake_.iterations, 100),
              HasSubstr("2 changes are not in the recording and are not shown\n"));
  EXPECT_THAT(CampaignLine(fake_.campaign), HasSubstr("iteration 5"));
}

}  // namespace
}  // namespace pawl
