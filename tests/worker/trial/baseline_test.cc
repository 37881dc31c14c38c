#include "worker/trial/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

v1::Size Size(const std::string& name, int rows) {
  v1::Size size;
  size.set_name(name);
  (*size.mutable_values())["ROWS"] = rows;
  (*size.mutable_values())["COLS"] = 128;
  return size;
}

TEST(BaselineRequests, AreOneObjectALine) {
  const std::string text = BaselineRequests({Size("tiny", 8), Size("ma\"in\n", 1024)}, ~uint64_t{0}, 30);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "");
  const nlohmann::json tiny = nlohmann::json::parse(lines[0], nullptr, false);
  EXPECT_EQ(tiny["size"], "tiny");
  EXPECT_EQ(tiny["sizes"], nlohmann::json({{"ROWS", 8}, {"COLS", 128}}));
  EXPECT_EQ(tiny["measurements"], 30);
  // Small enough for every generator's seed.
  EXPECT_GT(tiny["seed"].get<uint64_t>(), 0u);
  EXPECT_LT(tiny["seed"].get<uint64_t>(), uint64_t{1} << 31);
  EXPECT_EQ(nlohmann::json::parse(lines[1], nullptr, false)["size"], "ma\"in\n");
}

TEST(ReadBaselineAnswers, GivesTheTimesInOrder) {
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = ReadBaselineAnswers(
      "{\"size\": \"tiny\", \"graph_us\": 5.5, \"event_us\": 24, \"what\": \"torch 2.11\"}\n\n"
      "{\"size\": \"main\", \"graph_us\": 7, \"event_us\": 25.5, \"more\": []}");
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[0].size(), "tiny");
  EXPECT_EQ((*times)[0].graph_us(), 5.5);
  EXPECT_EQ((*times)[0].event_us(), 24);
  EXPECT_EQ((*times)[0].what(), "torch 2.11");
  EXPECT_EQ((*times)[1].size(), "main");
  EXPECT_EQ((*times)[1].event_us(), 25.5);
  EXPECT_EQ(ReadBaselineAnswers("").value().size(), 0u);
}

TEST(ReadBaselineAnswers, PassesAnErrorOn) {
  const absl::Status status =
      ReadBaselineAnswers("{\"size\": \"main\", \"error\": \"no torch: pip install torch\"}\n").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("size main"), HasSubstr("no torch: pip install torch")));
}

TEST(ReadBaselineAnswers, NamesTheLineAndWhatItLacks) {
  const std::string good = "{\"size\": \"tiny\", \"graph_us\": 5, \"event_us\": 24}\n";
  const auto error = [&](const std::string& line) { return Message(ReadBaselineAnswers(good + line).status()); };
  EXPECT_THAT(error("{\"size\": \"main\", \"event_us\": 24}"),
              HasSubstr("line 2 of the baseline's output lacks a positive graph_us"));
  EXPECT_THAT(error("{\"size\": \"main\", \"graph_us\": 5}"), HasSubstr("lacks a positive event_us"));
  EXPECT_THAT(error("{\"size\": \"main\", \"graph_us\": -5, \"event_us\": 24}"),
              HasSubstr("lacks a positive graph_us"));
  EXPECT_THAT(error("{\"size\": \"main\", \"graph_us\": 0, \"event_us\": 24}"), HasSubstr("lacks a positive graph_us"));
  EXPECT_THAT(error("{\"size\": \"main\", \"graph_us\": \"5\", \"event_us\": 24}"),
              HasSubstr("lacks a positive graph_us"));
}

TEST(ReadBaselineAnswers, ShowsALineThatIsNoAnswer) {
  for (const char* line : {"warming up ...", "[1, 2]", "7", "{\"size\": 3, \"graph_us\": 5, \"event_us\": 24}", "{"}) {
    EXPECT_THAT(Message(ReadBaselineAnswers(line).status()), AllOf(HasSubstr("line 1"), HasSubstr(line)));
  }
}

class RunBaselineTest : public testing::Test {
 protected:
  void SetUp() override {
    ProcessOptions version;
    version.argv = {"python3", "--version"};
    const absl::StatusOr<ProcessResult> python = RunProcess(version);
    if (!python.ok() || !python->ok()) GTEST_SKIP() << "no python3 on this machine";
    bundle_.add_baseline_command("python3");
    bundle_.add_baseline_command("baseline.py");
  }

  absl::StatusOr<std::vector<v1::BaselineTime>> Run(const std::string& script) {
    std::ofstream(folder_.path() / "baseline.py") << "import json, os, sys\n" << script;
    return RunBaseline(bundle_, folder_.path(), {Size("tiny", 8), Size("main", 1024)}, "GPU-1234");
  }

  const TemporaryFolder folder_{"pawl-baseline-test-"};
  v1::Bundle bundle_;
};

TEST_F(RunBaselineTest, AsksForEverySizeOnTheGpuGiven) {
  const absl::StatusOr<std::vector<v1::BaselineTime>> times =
      Run("for line in sys.stdin:\n"
          "  asked = json.loads(line)\n"
          "  print('talk', file=sys.stderr)\n"
          "  print(json.dumps({'size': asked['size'], 'graph_us': asked['sizes']['ROWS'],\n"
          "                    'event_us': asked['measurements'], 'what': os.environ['CUDA_VISIBLE_DEVICES']}))\n");
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[0].size(), "tiny");
  EXPECT_EQ((*times)[0].graph_us(), 8);
  EXPECT_EQ((*times)[1].graph_us(), 1024);
  EXPECT_GE((*times)[1].event_us(), 30);
  EXPECT_EQ((*times)[1].what(), "GPU-1234");
}

TEST_F(RunBaselineTest, RunsFromTheFilesThatTravelWithTheBundle) {
  v1::SourceFile* script = bundle_.add_baseline_files();
  script->set_path("baseline.py");
  script->set_text(
      "import json, sys\n"
      "what = open('data/what.txt').read()\n"
      "for line in sys.stdin:\n"
      "  print(json.dumps({'size': json.loads(line)['size'], 'graph_us': 1, 'event_us': 2, 'what': what}))\n");
  v1::SourceFile* data = bundle_.add_baseline_files();
  data->set_path("./data/what.txt");
  data->set_text("a peer");
  *bundle_.add_sizes() = Size("tiny", 8);
  *bundle_.add_sizes() = Size("main", 1024);
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = RunBaseline(bundle_, "GPU-1234");
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[1].size(), "main");
  EXPECT_EQ((*times)[1].what(), "a peer");
}

TEST_F(RunBaselineTest, PutsNoFileOutsideOfItsFolder) {
  for (const char* path :
       {"../pawl-baseline-outside", "/tmp/pawl-baseline-outside", "a/../../pawl-baseline-outside", ""}) {
    v1::Bundle bundle = bundle_;
    bundle.add_baseline_files()->set_path(path);
    EXPECT_THAT(Message(RunBaseline(bundle, "GPU-1234").status()), HasSubstr("outside of the bundle")) << path;
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::temp_directory_path() / "pawl-baseline-outside"));
}

TEST_F(RunBaselineTest, WantsAnAnswerForEverySize) {
  const char* one = "print(json.dumps({'size': 'tiny', 'graph_us': 1, 'event_us': 1}))\n";
  EXPECT_THAT(Message(Run(one).status()), HasSubstr("answered 1 of 2 sizes"));
  EXPECT_THAT(Message(Run(std::string(one) + one).status()), HasSubstr("answered tiny where main was asked for"));
}

TEST_F(RunBaselineTest, ShowsTheEndOfWhatACrashedScriptSaid) {
  const absl::Status status =
      Run("print('x' * 100000, file=sys.stderr)\nraise ValueError('no such device')\n").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("exited with code 1"), HasSubstr("ValueError: no such device")));
  EXPECT_LT(status.message().size(), 1000u);
}

TEST_F(RunBaselineTest, SaysThatTheProgramIsMissing) {
  bundle_.set_baseline_command(0, "no-such-python");
  EXPECT_THAT(Message(Run("").status()), HasSubstr("no-such-python"));
}

}  // namespace
}  // namespace pawl
