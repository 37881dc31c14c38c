// The commands as programs, against a fake orchestrator.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "tests/cli/some_iterations.h"
#include "tests/instrumented.h"
#include "tests/kernels/bundle_folder.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    fake_.iterations = SomeIterations();
    fake_.campaign.set_state(v1::FINISHED);
    fake_.campaign.set_stop_reason(v1::STOP_REASON_SPACE);
    fake_.campaign.mutable_spec()->mutable_goal()->set_size("main");
    fake_.campaign.set_device("NVIDIA H200");
    fake_.campaign.set_best(4);
    fake_.campaign.set_best_us(11.18);
    fake_.campaign.set_speedup_over_start(1.8);
    for (size_t i = 0; i < fake_.iterations.size(); ++i) {
      v1::WatchCampaignResponse message;
      message.mutable_event()->set_sequence(static_cast<int64_t>(10 + i));
      *message.mutable_event()->mutable_finished()->mutable_iteration() = fake_.iterations[i];
      fake_.events.push_back(message);
    }
    v1::Worker worker;
    worker.set_name("workers/h200-0");
    worker.set_state(v1::WORKER_STATE_IDLE);
    worker.mutable_device()->set_label("NVIDIA H200");
    fake_.workers = {worker};
  }

  ProcessResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--orchestrator", fake_.address()});
    return Pawl(arguments, {{"HOME", home_.path().string()}});
  }

  FakeOrchestrator fake_;
  const TemporaryFolder home_{"pawl-home-"};
};

TEST_F(CommandsTest, ShowHelpWithAnExampleEach) {
  const ProcessResult all = Pawl({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* command :
       {"run",     "submit",    "watch",    "show",   "history", "diff",       "best",    "verify",     "propose",
        "explain", "situation", "patterns", "report", "cancel",  "pause",      "resume",  "campaigns",  "workers",
        "check",   "record",    "import",   "doctor", "help",    "completion", "lessons", "maintenance"}) {
    EXPECT_THAT(all.out, HasSubstr(std::string("  ") + command + " "));
    const ProcessResult help = Pawl({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, testing::ContainsRegex(std::string("Examples?: pawl ") + command));
  }
}

TEST_F(CommandsTest, FailWhereWhatTheyPrintIsLost) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", BuiltProgram("pawl") + " help > /dev/full"};
  options.timeout = absl::Seconds(60);
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_THAT(result->err, HasSubstr("could not be written"));
}

TEST_F(CommandsTest, AnswerWrongUsageWithTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"history"},
                                             {"history", "seven"},
                                             {"history", "campaigns/7/iterations/1"},
                                             {"history", "7", "--sort", "verdict"},
                                             {"history", "7", "--columns", "number,number"},
                                             {"report", "7", "--format", "pdf"},
                                             {"history", "7", "--page-size", "5000"},
                                             {"history", "7", "--kept", "--verdict", "kept"},
                                             {"show", "7", "campaigns/8/iterations/1"},
                                             {"diff", "7"},
                                             {"diff", "7", "x"},
                                             {"propose", "7", "TILE_M"},
                                             {"propose", "7", "TILE_M=many"},
                                             {"run", "x", "--device", "gpu"},
                                             {"run", "x", "--iterations", "0"},
                                             {"history", "7", "--database", "x"}}) {
    EXPECT_EQ(Run(wrong).exit_code, 2) << wrong.front() << " " << wrong.back();
  }
}

TEST_F(CommandsTest, PrintHistoryAsATableOnePageAtATime) {
  const ProcessResult first = Run({"history", "campaigns/7", "--page-size", "2", "--sort", "number"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out,
            "campaigns/7: attention at main, finished; on NVIDIA H200\n"
            "#  verdict      time  baseline  parent   start  change        reason\n"
            "0  kept     20.12 us    0.300x       -  1.000x  start         the start\n"
            "1  kept     13.41 us    0.450x  1.500x  1.500x  TILE_M 64→32  faster: 1.45 to 1.55\n");
  EXPECT_EQ(first.err,
            "more: pawl history 7 --sort number --page-size 2 --orchestrator " + fake_.address() + " --page-token 2\n");
  const ProcessResult last = Run({"history", "7", "--page-size", "2", "--page-token", "4"});
  EXPECT_THAT(last.out, HasSubstr("4  kept "));
  EXPECT_EQ(last.err, "");
}

// What the recording of a replay lacks.
v1::Iteration Lacking(int number) {
  v1::Iteration iteration;
  iteration.set_number(number);
  iteration.set_verdict(v1::REJECTED);
  iteration.set_reason("passed over: not in the recording");
  iteration.set_untried(true);
  return iteration;
}

TEST_F(CommandsTest, FillAPageOfTheHistoryWithWhatIsShown) {
  // 0, 1, four that the recording lacks, 2, 3, 4, and four again.
  std::vector<v1::Iteration> with = fake_.iterations;
  for (int i = 0; i < 4; ++i) with.insert(with.begin() + 2, Lacking(100 + i));
  for (int i = 0; i < 4; ++i) with.push_back(Lacking(200 + i));
  fake_.iterations = with;
  const auto numbers = [&](const ProcessResult& result) {
    std::vector<int> found;
    for (const std::string& line : Lines(result.out)) {
      int number = 0;
      const absl::string_view row = absl::StripLeadingAsciiWhitespace(line);
      if (absl::SimpleAtoi(row.substr(0, row.find("  ")), &number)) found.push_back(number);
    }
    return found;
  };
  const ProcessResult first = Run({"history", "7", "--page-size", "3"});
  EXPECT_THAT(numbers(first), ElementsAre(0, 1, 2));
  EXPECT_THAT(first.err, HasSubstr("4 changes are not in the recording and are not shown"));
  EXPECT_THAT(first.err, HasSubstr("more: pawl history 7 --page-size 3 "));
  EXPECT_THAT(first.err, HasSubstr(" --page-token 7\n"));
  const ProcessResult second = Run({"history", "7", "--page-size", "2", "--page-token", "7"});
  EXPECT_THAT(numbers(second), ElementsAre(3, 4));
  EXPECT_THAT(second.err, Not(HasSubstr("more:"))) << "only what is not shown follows";
  EXPECT_THAT(numbers(Run({"history", "7", "--sort", "-time", "--page-size", "5"})), SizeIs(5));
  EXPECT_THAT(Lines(Run({"history", "7", "--json"}).out), SizeIs(13)) << "programs get everything";
}

TEST_F(CommandsTest, NameTheColumnOrVariableThatWasMeant) {
  fake_.known_metrics = {"registers"};
  const ProcessResult column = Run({"history", "7", "--columns", "number,verdct"});
  EXPECT_EQ(column.exit_code, 2);
  EXPECT_EQ(column.out, "");
  EXPECT_THAT(column.err, HasSubstr("there is no column verdct; did you mean verdict?"));
  EXPECT_EQ(Run({"history", "7", "--sort", "tiem"}).exit_code, 2);
  const ProcessResult variable = Run({"history", "7", "--variable", "TILE_N"});
  EXPECT_EQ(variable.exit_code, 2);
  EXPECT_THAT(variable.err,
              HasSubstr("campaigns/7 has no variable TILE_N; expected TILE_M, WARPS; did you mean TILE_M?"));
  const ProcessResult rule = Run({"history", "7", "--finding", "grid-to-small"});
  EXPECT_EQ(rule.exit_code, 2);
  EXPECT_THAT(rule.err, HasSubstr("there is no rule grid-to-small; did you mean grid-too-small"));
  EXPECT_LT(rule.err.size(), 160u) << "the nearest, not all of them";
  fake_.iterations[1].mutable_finding()->set_rule("a-rule-of-other-profiles");
  EXPECT_EQ(Run({"history", "7", "--finding", "a-rule-of-other-profiles"}).exit_code, 0);
  EXPECT_THAT(Run({"history", "7", "--finding", "bank-conflicts"}).err, HasSubstr("No matching iterations"));
}

TEST_F(CommandsTest, NameTheBundleThatWasMeant) {
  for (const char* command : {"run", "submit"}) {
    const ProcessResult result = Run({command, "atention"});
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("did you mean attention?")) << command;
  }
  EXPECT_THAT(Pawl({"check", "atention"}).err, HasSubstr("did you mean attention?"));
}

TEST_F(CommandsTest, PassFiltersOnToTheOrchestrator) {
  Run({"history", "7", "--verdict", "rejected", "--variable", "TILE_M", "--finding", "grid-too-small", "--sort",
       "speedup", "--page-size", "10", "--page-token", "3"});
  ASSERT_THAT(fake_.asked().lists, SizeIs(2)) << "the first is for the names of variables";
  const v1::ListIterationsRequest request = fake_.asked().lists[1];
  EXPECT_EQ(request.verdict(), v1::REJECTED);
  EXPECT_EQ(request.variable(), "TILE_M");
  EXPECT_EQ(request.finding(), "grid-too-small");
  EXPECT_EQ(request.order(), v1::ITERATION_ORDER_SPEEDUP);
  EXPECT_EQ(request.page_size(), 10);
  EXPECT_EQ(request.page_token(), "3");
}

TEST_F(CommandsTest, PrintAllOfTheHistoryAsJson) {
  for (int i = 5; i < 1500; ++i) {
    v1::Iteration iteration = fake_.iterations[2];
    iteration.set_number(i);
    fake_.iterations.push_back(iteration);
  }
  const ProcessResult history = Run({"history", "7", "--json"});
  EXPECT_EQ(history.exit_code, 0) << history.err;
  const std::vector<std::string> lines = Lines(history.out);
  ASSERT_THAT(lines, SizeIs(1500));
  EXPECT_THAT(lines[0], HasSubstr("\"number\":0,"));
  EXPECT_THAT(lines[0], Not(HasSubstr("\"parent\":")));
  // What is 0 or was never compared stands in a rejected iteration's row as well; what only `show` has does not.
  for (const char* key :
       {"\"variant\":{", "\"reason\":\"", "\"comparison\":\"COMPARISON_RESULT_UNSPECIFIED\"", "\"timeUs\":0",
        "\"speedupOverParent\":0", "\"speedupOverStart\":0", "\"speedupOverBaseline\":0", "\"stages\":[]",
        "\"device\":\"NVIDIA H200\"", "\"verdict\":\"REJECTED\"", "\"parent\":1"}) {
    EXPECT_THAT(lines[3], HasSubstr(key));
  }
  EXPECT_THAT(lines[3], Not(HasSubstr("warmUs")));
  EXPECT_EQ(Parse<v1::Iteration>(lines[3]).number(), 3);
  EXPECT_EQ(Parse<v1::Iteration>(lines[1499]).number(), 1499);
  EXPECT_THAT(fake_.asked().lists, SizeIs(2));
  EXPECT_THAT(Lines(Run({"history", "7", "--json", "--page-size", "3"}).out), SizeIs(3));
}

TEST_F(CommandsTest, ShowCampaignsIterationsAndWorkers) {
  const ProcessResult campaign = Run({"show", "7"});
  EXPECT_EQ(campaign.exit_code, 0) << campaign.err;
  EXPECT_THAT(campaign.out, HasSubstr("best       11.18 us  iteration 4: TILE_M=128 WARPS=4\n"));
  EXPECT_EQ(Parse<v1::Campaign>(Run({"show", "7", "--json"}).out).best(), 4);
  EXPECT_THAT(Run({"show", "7", "2"}).out, HasSubstr("campaigns/7/iterations/2 reverted: slower\n"));
  EXPECT_EQ(Parse<v1::Iteration>(Run({"show", "7", "2", "--json"}).out).number(), 2);
  EXPECT_THAT(Run({"campaigns"}).out, HasSubstr("7  finished  -     11.18 us         -  attention at main"));
  EXPECT_EQ(Parse<v1::Campaign>(Run({"campaigns", "--json"}).out).name(), "campaigns/7");
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("h200-0  idle"));
  EXPECT_EQ(Parse<v1::Worker>(Run({"workers", "--json"}).out).name(), "workers/h200-0");
  EXPECT_THAT(Run({"best", "7"}).out, HasSubstr("  4  TILE_M 64→128  1.200x  11.18 us\n"));
  EXPECT_EQ(Parse<v1::BestVariant>(Run({"best", "7", "--json"}).out).iteration().number(), 4);
}

TEST_F(CommandsTest, DiffIterationsAndCampaigns) {
  const ProcessResult two = Run({"diff", "7", "0", "1"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("TILE_M"));
  EXPECT_THAT(two.out, Not(HasSubstr("WARPS")));
  EXPECT_THAT(Run({"diff", "7", "1", "1"}).out, HasSubstr("do not differ"));
  EXPECT_THAT(Run({"diff", "7", "7"}).out, HasSubstr("campaigns/7 and campaigns/7 do not differ"));
  EXPECT_THAT(Lines(Run({"diff", "7", "0", "1", "--json"}).out), SizeIs(2));
}

TEST_F(CommandsTest, PrintTheColumnsThatAreAskedFor) {
  (*fake_.iterations[1].mutable_metrics())["registers"] = 64;
  (*fake_.iterations[4].mutable_metrics())["registers"] = 32;
  const ProcessResult history =
      Run({"history", "7", "--columns", "number,TILE_M,registers,time", "--sort", "registers"});
  EXPECT_EQ(history.exit_code, 0) << history.err;
  EXPECT_EQ(history.out,
            "campaigns/7: attention at main, finished; on NVIDIA H200\n"
            "#  TILE_M  registers      time\n"
            "4     128         32  11.18 us\n"
            "1      32         64  13.41 us\n"
            "0      64          -  20.12 us\n"
            "2      16          -  13.69 us\n"
            "3       8          -         -\n");
  const std::vector<v1::ListIterationsRequest> lists = fake_.asked().lists;
  ASSERT_FALSE(lists.empty());
  ASSERT_EQ(lists.back().metrics_size(), 2);
  EXPECT_EQ(lists.back().metrics(0), "registers");
  const ProcessResult slowest =
      Run({"history", "7", "--columns", "number,finding,parent", "--sort", "-time", "--page-size", "1"});
  EXPECT_THAT(slowest.out, HasSubstr("#  finding  from\n0  -           -\n"));
}

TEST_F(CommandsTest, WriteReports) {
  const std::string file = (home_.path() / "page.html").string();
  const ProcessResult html = Run({"report", "7", "--output", file});
  EXPECT_EQ(html.exit_code, 0) << html.err;
  EXPECT_EQ(html.out, file + "\n");
  std::stringstream page;
  page << std::ifstream(file).rdbuf();
  EXPECT_EQ(page.str(), "<!DOCTYPE html>\n");
  EXPECT_EQ(Run({"report", "7", "--output", "-"}).out, "<!DOCTYPE html>\n");
  EXPECT_EQ(Run({"report", "7", "--format", "md"}).out, "# attention\n");
  EXPECT_EQ(Parse<v1::Report>(Run({"report", "7", "--format", "json"}).out).campaign().best(), 4);
  EXPECT_EQ(Run({"report", "8"}).exit_code, 1);
  EXPECT_EQ(Run({"report", "7", "--output", (home_.path() / "no/such/folder/x").string()}).exit_code, 1);
}

TEST_F(CommandsTest, WatchToTheEndWithTheCampaignsExitCode) {
  fake_.BreakWatchAfter(2);
  const ProcessResult watch = Run({"watch", "7"});
  EXPECT_EQ(watch.exit_code, 0) << watch.err;
  EXPECT_THAT(fake_.asked().watches, ElementsAre(0, 11));
  EXPECT_THAT(watch.out, HasSubstr("   4  kept       11.18 us    0.540x   1.200x   1.800x  TILE_M 64→128 (from 1)"));
  EXPECT_THAT(watch.err, HasSubstr("reconnecting"));
  const ProcessResult json = Run({"watch", "7", "--after", "12", "--json"});
  ASSERT_THAT(Lines(json.out), SizeIs(2));
  EXPECT_EQ(Parse<v1::WatchCampaignResponse>(Lines(json.out)[0]).event().sequence(), 13);
  fake_.campaign.set_best(0);
  EXPECT_EQ(Run({"watch", "7"}).exit_code, 3);
  fake_.campaign.set_state(v1::FAILED);
  EXPECT_EQ(Run({"watch", "7"}).exit_code, 1);
}

TEST_F(CommandsTest, WatchNoVerificationThatNoWorkerTakes) {
  fake_.watch_stays_open = true;
  fake_.workers.clear();
  fake_.campaign.mutable_end_time()->set_seconds(1763215401);
  fake_.campaign.set_verifying(true);
  const absl::Time begin = absl::Now();
  const ProcessResult watch = Run({"watch", "7"});
  EXPECT_EQ(watch.exit_code, 0) << watch.err;
  EXPECT_THAT(watch.err, HasSubstr("campaigns/7 has ended; a verification of it waits for a worker\n"));
  EXPECT_THAT(watch.out, HasSubstr("campaigns/7 finished"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10) * kSlowdown);
}

TEST_F(CommandsTest, SubmitABundle) {
  BundleFolder folder;
  const ProcessResult submit = Run({"submit", folder.path().string(), "--iterations", "5", "--goal", "2", "--minutes",
                                    "3", "--dollars", "0.5", "--gpu", "H200", "--size", "tiny"});
  EXPECT_EQ(submit.exit_code, 0) << submit.err;
  EXPECT_EQ(submit.out, "campaigns/7\n");
  ASSERT_THAT(fake_.asked().submits, SizeIs(1));
  const v1::SubmitCampaignRequest request = fake_.asked().submits[0];
  EXPECT_EQ(request.bundle().name(), "scale_rows");
  EXPECT_EQ(request.spec().budget().iterations(), 5);
  EXPECT_EQ(request.spec().budget().minutes(), 3);
  EXPECT_EQ(request.spec().budget().dollars(), 0.5);
  EXPECT_EQ(request.spec().goal().speedup(), 2);
  EXPECT_EQ(request.spec().goal().size(), "tiny");
  EXPECT_EQ(request.spec().gpu(), "H200");
  const ProcessResult wait = Run({"submit", folder.path().string(), "--wait"});
  EXPECT_EQ(wait.exit_code, 0);
  EXPECT_THAT(wait.out, testing::StartsWith("campaigns/7\ncampaigns/7 finished"));
}

TEST_F(CommandsTest, SubmitAGoalOverSeveralSizes) {
  BundleFolder folder;
  EXPECT_EQ(Run({"submit", folder.path().string(), "--sizes", "tiny=0.3,main=0.7", "--worst", "0.95"}).exit_code, 0);
  EXPECT_EQ(Run({"submit", folder.path().string(), "--sizes", "tiny,main", "--portfolio", "3"}).exit_code, 0);
  ASSERT_THAT(fake_.asked().submits, SizeIs(2));
  EXPECT_EQ(fake_.asked().submits[0].spec().goal().portfolio(), 0);
  EXPECT_EQ(fake_.asked().submits[1].spec().goal().portfolio(), 3);
  const v1::Goal weighted = fake_.asked().submits[0].spec().goal(), equal = fake_.asked().submits[1].spec().goal();
  EXPECT_EQ(weighted.sizes().at("tiny"), 0.3);
  EXPECT_EQ(weighted.sizes().at("main"), 0.7);
  EXPECT_EQ(weighted.size(), "main") << "the heaviest stands for all";
  EXPECT_EQ(weighted.worst(), 0.95);
  EXPECT_EQ(equal.sizes().at("tiny"), 0.5);
}

TEST_F(CommandsTest, SubmitNoGoalOverSizesThatMakesNoSense) {
  BundleFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--sizes", "tiny=0.3,main=0.6"}, "the weights have the sum 0.9; expected 1"},
      {{"--sizes", "tiny=-1,main=2"}, "the weight of tiny is \"-1\"; expected a number above 0"},
      {{"--sizes", "tiny=0.5,main"}, "the weight of main is \"\"; expected a number above 0"},
      {{"--sizes", "tiny=0.5,huge=0.5"}, "has no size huge"},
      {{"--sizes", "tiny,tiny"}, "tiny is there twice"},
      {{"--sizes", "tiny,main", "--worst", "1.5"}, "--worst"},
      {{"--sizes", "tiny,main", "--size", "main"}, "--size"},
      {{"--sizes", "tiny,main", "--worst", "nan"}, "nan is not a number from 0 to 1"},
      {{"--worst", "0.9"}, "--worst is for a goal over several sizes"},
      {{"--sizes", "main", "--worst", "0.9"}, "--worst is for a goal over several sizes"},
      {{"--sizes", "tiny,main", "--portfolio", "9"}, "--portfolio"},
      {{"--portfolio", "2"}, "--portfolio is for a goal over several sizes"}};
  for (const auto& [flags, why] : wrong) {
    std::vector<std::string> command = {"submit", folder.path().string()};
    command.insert(command.end(), flags.begin(), flags.end());
    const ProcessResult submit = Run(command);
    EXPECT_EQ(submit.exit_code, 2) << submit.err;
    EXPECT_THAT(submit.err, HasSubstr(why));
  }
  EXPECT_THAT(fake_.asked().submits, IsEmpty());
}

TEST_F(CommandsTest, SubmitNothingThatIsWrong) {
  BundleFolder folder;
  EXPECT_EQ(Run({"submit", folder.path().string(), "--size", "huge"}).exit_code, 2);
  folder.Replace("summary ", "sumary ");
  folder.Replace("start   = 64", "start   = 65");
  const ProcessResult submit = Run({"submit", folder.path().string()});
  EXPECT_EQ(submit.exit_code, 1);
  EXPECT_THAT(submit.err, HasSubstr("unknown key sumary"));
  EXPECT_THAT(submit.err, HasSubstr("start is 65"));
  EXPECT_THAT(fake_.asked().submits, IsEmpty());
}

TEST_F(CommandsTest, BeginAndEndMaintenance) {
  EXPECT_EQ(Run({"maintenance", "status"}).out, "maintenance is off: trials are leased\n");
  fake_.maintenance.set_on(true);
  fake_.maintenance.set_author("olga");
  fake_.maintenance.set_reason("new driver");
  fake_.maintenance.set_leased(2);
  fake_.maintenance.mutable_since()->set_seconds(1'790'000'000);
  EXPECT_THAT(Run({"maintenance", "on", "--reason", "new driver"}).out,
              HasSubstr(" by olga (new driver): no trial is leased; 2 trials still run\n"));
  fake_.maintenance.set_leased(0);
  EXPECT_THAT(Run({"maintenance", "status"}).out, HasSubstr("no trial is leased; none runs any more\n"));
  EXPECT_THAT(Run({"maintenance", "off", "--json"}).out, HasSubstr("\"reason\":\"new driver\""));
  ASSERT_THAT(fake_.asked().maintenance, SizeIs(2));
  EXPECT_TRUE(fake_.asked().maintenance[0].on());
  EXPECT_EQ(fake_.asked().maintenance[0].reason(), "new driver");
  EXPECT_FALSE(fake_.asked().maintenance[1].on());
  EXPECT_EQ(Run({"maintenance"}).exit_code, 2);
  EXPECT_EQ(Run({"maintenance", "perhaps"}).exit_code, 2);
}

TEST_F(CommandsTest, SayWhatCampaignsWaitForThatCouldGoOn) {
  fake_.campaign.set_state(v1::WAITING);
  fake_.campaign.set_waiting_for(v1::WAITING_FOR_LIMIT);
  fake_.campaign.set_message("ann has used 300 of 200 GPU seconds");
  EXPECT_THAT(Run({"campaigns"}).err, HasSubstr("7 waits: ann has used 300 of 200 GPU seconds\n"));
  EXPECT_THAT(Run({"show", "7"}).out, HasSubstr("campaigns/7 waiting: ann has used 300 of 200 GPU seconds\n"));
  BundleFolder folder;
  EXPECT_THAT(Run({"submit", folder.path().string()}).err,
              HasSubstr("It waits: ann has used 300 of 200 GPU seconds\n"));
}

TEST_F(CommandsTest, Steer) {
  EXPECT_EQ(Run({"pause", "7"}).exit_code, 0);
  EXPECT_EQ(Run({"resume", "7"}).exit_code, 0);
  EXPECT_EQ(Run({"cancel", "7", "--reason", "wrong size"}).out, "campaigns/7 is finished: no change is left to try\n");
  ASSERT_THAT(fake_.asked().cancels, SizeIs(1));
  EXPECT_EQ(fake_.asked().cancels[0].reason(), "wrong size");
  *fake_.situation.mutable_variables() = SomeBundle().variables();
  EXPECT_EQ(Run({"propose", "7", "TILE_M=16", "--author", "ada", "--why", "small"}).out,
            "TILE_M=16 will be tried after the trials that are planned already\n");
  fake_.situation.set_waits(true);
  EXPECT_EQ(Run({"propose", "7", "TILE_M=16"}).out, "TILE_M=16 will be tried next\n");
  fake_.situation.set_waits(false);
  fake_.situation.mutable_campaign()->set_state(v1::PAUSED);
  EXPECT_THAT(Run({"propose", "7", "TILE_M=16"}).out,
              HasSubstr("planned already; campaigns/7 is paused: pawl resume 7 --orchestrator "));
  ASSERT_THAT(fake_.asked().proposals, SizeIs(3));
  EXPECT_EQ(fake_.asked().proposals[0].change().to(), 16);
  EXPECT_EQ(fake_.asked().proposals[0].author(), "ada");
}

// The best variant of a bundle that can be handed over.
void Deliver(FakeOrchestrator& fake) {
  const char* root = getenv("PAWL_SOURCE_DIR");
  fake.bundle = ReadBundle(std::filesystem::path(root == nullptr ? "." : root) / "kernels/transpose").bundle;
  fake.campaign.set_bundle(fake.bundle.name());
  fake.campaign.mutable_spec()->mutable_goal()->set_size(fake.bundle.goal().size());
  for (v1::Iteration& iteration : fake.iterations) {
    *iteration.mutable_variant() = StartVariant(fake.bundle).values();
    iteration.mutable_gpu()->set_compute_major(9);
  }
}

TEST_F(CommandsTest, WriteTheBestAndSayWhatAWorkerMadeOfIt) {
  Deliver(fake_);
  fake_.verification.set_iteration(4);
  fake_.verification.set_text("3 us now");
  v1::HandOffCheck& program = *fake_.verification.add_hand_off();
  program.set_form("program");
  program.set_passed(true);
  v1::HandOffCheck& extension = *fake_.verification.add_hand_off();
  extension.set_form("extension");
  extension.set_text("it exited with code 1:\nno module named torch");
  const std::filesystem::path folder = home_.path() / "winner";
  const ProcessResult best = Run({"best", "7", "--output", folder.string()});
  EXPECT_EQ(best.exit_code, 0) << best.err;
  EXPECT_THAT(best.out, testing::ContainsRegex("program   verified on NVIDIA H200, 20..-..-..\n"));
  EXPECT_THAT(best.out, HasSubstr("extension not verified: it exited with code 1: no module named torch\n"));
  EXPECT_THAT(best.out, HasSubstr("cubin     not available"));
  EXPECT_THAT(fake_.asked().verifications, ElementsAre("campaigns/7/iterations/4"));
  EXPECT_THAT(fake_.asked().handed_off, Contains("check_program.sh"));
  EXPECT_THAT(fake_.asked().handed_off, Contains("source/transpose.cu"));
  EXPECT_TRUE(std::filesystem::exists(folder / "test_transpose.py"));
  EXPECT_TRUE(std::filesystem::exists(folder / "README.md"));
  EXPECT_THAT(Run({"best", "7", "--output", folder.string()}).err, HasSubstr("name a new or empty folder"));
}

TEST_F(CommandsTest, WriteTheBestOfARecordingUnverified) {
  Deliver(fake_);
  fake_.campaign.set_replay(true);
  const ProcessResult best = Run({"best", "7", "--output", (home_.path() / "winner").string()});
  EXPECT_EQ(best.exit_code, 0) << best.err;
  EXPECT_THAT(best.out, HasSubstr("program   not verified: the campaign ran on a recording"));
  EXPECT_THAT(fake_.asked().verifications, SizeIs(0));
  fake_.campaign.set_replay(false);
  EXPECT_THAT(Run({"best", "7", "--no-verify", "--output", (home_.path() / "other").string()}).out,
              HasSubstr("extension not verified: --no-verify\n"));
}

TEST_F(CommandsTest, VerifyByTheOrchestratorsWorkers) {
  fake_.verification.set_iteration(4);
  fake_.verification.set_agrees(true);
  const ProcessResult agrees = Run({"verify", "7"});
  EXPECT_EQ(agrees.exit_code, 0) << agrees.err;
  EXPECT_THAT(agrees.out, HasSubstr("iteration 4 agrees"));
  EXPECT_THAT(fake_.asked().verifications, ElementsAre("campaigns/7/iterations/4"));
  fake_.events.pop_back();
  fake_.verification.set_agrees(false);
  const ProcessResult differs = Run({"verify", "7", "2", "--json"});
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_THAT(differs.out, HasSubstr("\"agrees\":false"));
  fake_.events.pop_back();
  fake_.campaign.set_device("replay of an NVIDIA H200");
  fake_.campaign.set_replay(true);
  fake_.verification.set_measured_us(3);
  fake_.verification.set_recorded_us(3.5);
  EXPECT_EQ(Run({"verify", "7"}).out,
            "iteration 4 does not agree: recorded 3.000 us, stored 3.500 us\n"
            "replay   compared with the recording; nothing was built or measured\n");
  const size_t asked = fake_.asked().verifications.size();
  const ProcessResult elsewhere = Run({"verify", "7", "--device", "cuda:0"});
  EXPECT_EQ(elsewhere.exit_code, 4);
  EXPECT_THAT(elsewhere.err, HasSubstr("cuda:0 can't verify the times of a recording"));
  EXPECT_EQ(fake_.asked().verifications.size(), asked) << "nothing is left for others to wait for";
}

TEST_F(CommandsTest, SayWhatIsWrongAndWhatToDo) {
  const ProcessResult missing = Run({"history", "8"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "pawl history: there is no campaigns/8\n  fix: pawl campaigns lists all campaigns\n");
  const ProcessResult nobody = Pawl({"history", "7", "--orchestrator", "unix:/nonexistent/socket"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("no orchestrator answers at unix:/nonexistent/socket\n  fix: start one"));
}

TEST_F(CommandsTest, MakeNoDatabaseToLookInto) {
  for (const char* command : {"history", "show", "best", "watch", "verify"}) {
    const ProcessResult result = Pawl({command, "7"}, {{"HOME", home_.path().string()}, {"XDG_DATA_HOME", ""}});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("no campaigns yet"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(home_.path()));
}

TEST_F(CommandsTest, FindTheOrchestratorInTheEnvironmentToo) {
  EXPECT_EQ(Pawl({"show", "7"}, {{"PAWL_ORCHESTRATOR", fake_.address()}}).exit_code, 0);
}

TEST_F(CommandsTest, NamesTheCommandThatWasMeant) {
  const ProcessResult run = Pawl({"histroy", "7"}, {{"HOME", home_.path().string()}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no command histroy; did you mean history?"));
  EXPECT_LT(run.err.size(), 160u) << "the nearest, not all of them";
  EXPECT_THAT(Pawl({"hist", "7"}).err, HasSubstr("; did you mean history?"));
  const ProcessResult strange = Pawl({"frobnicate"});
  EXPECT_EQ(strange.exit_code, 2);
  EXPECT_THAT(strange.err, testing::ContainsRegex("no command frobnicate; the nearest: [a-z]+, [a-z]+, [a-z]+\n"));
}

TEST_F(CommandsTest, NamesTheConnectionFlagThatIsWrong) {
  const ProcessResult both = Run({"history", "7", "--database", "x"});  // beside --orchestrator
  EXPECT_THAT(both.err, AllOf(HasSubstr("--database"), HasSubstr("--orchestrator"))) << both.err;
  const ProcessResult twice = Run({"history", "7", "--tls-ca", "a", "--tls-ca", "b"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--tls-ca")) << twice.err;
}

TEST_F(CommandsTest, SaysPlainlyThatANumberIsTooSmall) {
  const ProcessResult run = Run({"submit", "attention", "--iterations", "-3"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("-3 is not a number above 0"));
  EXPECT_EQ(Run({"submit", "attention", "--minutes", "inf"}).exit_code, 2);
}

}  // namespace
}  // namespace pawl
