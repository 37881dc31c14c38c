#include "worker/device/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/plan.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

v1::Size Size(const std::string& name, int rows) {
  v1::Size size;
  size.set_name(name);
  (*size.mutable_values())["ROWS"] = rows;
  (*size.mutable_values())["COLS"] = 128;
  return size;
}

v1::Bundle RowsBundle() {
  v1::Bundle bundle;
  bundle.set_name("rows");
  for (const auto& [name, role] : {std::pair{"in", v1::TENSOR_ROLE_INPUT}, std::pair{"out", v1::TENSOR_ROLE_OUTPUT},
                                   std::pair{"partial", v1::TENSOR_ROLE_SCRATCH}}) {
    v1::Tensor& tensor = *bundle.add_tensors();
    tensor.set_name(name);
    tensor.set_type(v1::DATA_TYPE_F16);
    tensor.set_role(role);
    tensor.add_shape("ROWS");
    tensor.add_shape("COLS");
  }
  v1::Launch& launch = *bundle.mutable_reference()->add_launches();
  launch.set_entry("reference");
  launch.add_grid("ROWS");
  launch.add_block("COLS");
  for (const char* argument : {"in", "out", "COLS"}) launch.add_arguments(argument);
  return bundle;
}

TEST(BaselineRequests, AreOneObjectALine) {
  const std::string text =
      BaselineRequests(RowsBundle(), {Size("tiny", 8), Size("ma\"in\n", 1024)}, TypicalGpu(), ~uint64_t{0}, 30);
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
  const nlohmann::json in = {
      {"name", "in"}, {"type", "f16"}, {"role", "input"}, {"fill", "normal"}, {"shape", {8, 128}}};
  EXPECT_EQ(tiny["tensors"][0], in);
  EXPECT_EQ(tiny["tensors"][1]["role"], "output");
  EXPECT_EQ(tiny["tensors"].size(), 2u) << "no scratch, whose shape may be a variant's";
}

TEST(BaselineRequests, LeaveTensorsOutThatCantBePlanned) {
  v1::Bundle bundle = RowsBundle();
  bundle.mutable_tensors(0)->set_shape(0, "ROWS / 3");
  const std::string text = BaselineRequests(bundle, {Size("tiny", 8)}, TypicalGpu(), 1, 30);
  EXPECT_FALSE(nlohmann::json::parse(text, nullptr, false).contains("tensors"));
}

v1::Plan WinnersPlan() {
  v1::Bundle bundle = RowsBundle();
  v1::Scalar& scalar = *bundle.add_scalars();
  scalar.set_name("limit");
  scalar.set_type(v1::DATA_TYPE_F32);
  scalar.set_value("0.1");
  v1::Launch& launch = *bundle.add_launches();
  launch = bundle.reference().launches(0);
  launch.set_entry("fast");
  launch.set_shared("2 * COLS");
  launch.add_arguments("limit");
  absl::StatusOr<v1::Plan> plan = MakePlan(bundle, v1::Variant(), Size("main", 64), TypicalGpu());
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

TEST(BesideRequest, HasTheWinnersLaunchesAndTensors) {
  const nlohmann::json request =
      nlohmann::json::parse(BesideRequest(WinnersPlan(), "", "the.cubin", 1), nullptr, false);
  EXPECT_EQ(request["size"], "main");
  EXPECT_EQ(request["sizes"]["ROWS"], 64);
  EXPECT_EQ(request["winner"]["cubin"], "the.cubin");
  const nlohmann::json& plan = request["winner"]["plan"];
  EXPECT_EQ(plan["tensors"].size(), 3u);
  EXPECT_EQ(plan["tensors"][2]["role"], "scratch");
  const nlohmann::json launch = {
      {"entry", "fast"},
      {"grid", {64, 1, 1}},
      {"block", {128, 1, 1}},
      {"shared", 256},
      {"arguments", {{{"tensor", 0}}, {{"tensor", 1}}, {{"bytes", "80000000"}}, {{"bytes", "cdcccc3d"}}}}};
  EXPECT_EQ(plan["launches"], nlohmann::json::array({launch}));
}

TEST(ReadBesideAnswer, GivesTheRatios) {
  const absl::StatusOr<v1::BesideBaseline> beside = ReadBesideAnswer(
      "\n{\"size\": \"main\", \"log_ratios\": [1, 0.5, 0, -1, 2], \"baseline_us\": 5.5, \"best_us\": 2}\n", "main");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->size(), "main");
  EXPECT_THAT(beside->log_ratios(), ElementsAre(1, 0.5, 0, -1, 2));
  EXPECT_EQ(beside->baseline_us(), 5.5);
  EXPECT_EQ(beside->best_us(), 2);
}

TEST(ReadBesideAnswer, SaysHowAScriptThatTimesItselfGetsARatio) {
  const absl::Status status =
      ReadBesideAnswer("{\"size\": \"main\", \"graph_us\": 5, \"event_us\": 9}", "main").status();
  EXPECT_THAT(Message(status), AllOf(HasSubstr("times itself"), HasSubstr("pawl_baseline.main")));
}

TEST(ReadBesideAnswer, NamesWhatIsWrong) {
  const auto error = [](const std::string& line) { return Message(ReadBesideAnswer(line, "main").status()); };
  const std::string times = "\"baseline_us\": 5.5, \"best_us\": 2";
  EXPECT_THAT(error(""), HasSubstr("is no answer"));
  EXPECT_THAT(error("{\"size\": \"main\", \"error\": \"no torch\"}"), HasSubstr("at size main: no torch"));
  EXPECT_THAT(error("{\"size\": \"tiny\", \"log_ratios\": [1, 1, 1, 1, 1], " + times + "}"),
              HasSubstr("answered tiny where main was asked for"));
  for (const char* ratios : {"[1, 1]", "7", "[1, 1, 1, 1, \"1\"]", "[]"}) {
    EXPECT_THAT(error(absl::StrCat("{\"size\": \"main\", \"log_ratios\": ", ratios, ", ", times, "}")),
                HasSubstr("are not 5 numbers or more"))
        << ratios;
  }
  EXPECT_THAT(error("{\"size\": \"main\", \"log_ratios\": [1, 1, 1, 1, 1], \"best_us\": 2}"),
              HasSubstr("lacks a positive baseline_us"));
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
    host_.gpu.set_uuid("GPU-1234");
  }

  absl::StatusOr<std::vector<v1::BaselineTime>> Run(const std::string& script) {
    std::ofstream(folder_.path() / "baseline.py") << "import json, os, sys\n" << script;
    return RunBaseline(bundle_, folder_.path(), {Size("tiny", 8), Size("main", 1024)}, host_);
  }

  const TemporaryFolder folder_{"pawl-baseline-test-"};
  v1::Bundle bundle_;
  BaselineHost host_;
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
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = RunBaseline(bundle_, host_);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ((*times)[1].size(), "main");
  EXPECT_EQ((*times)[1].what(), "a peer");
}

// What answers here is the module, since there is no PyTorch, or no GPU with this name.
TEST_F(RunBaselineTest, GivesPythonTheModuleThatTimesForIt) {
  const char* script = "import pawl_baseline\npawl_baseline.main(None, 'nothing')\n";
  const absl::Status in_folder = Run(script).status();
  EXPECT_TRUE(absl::IsUnavailable(in_folder)) << in_folder;
  EXPECT_THAT(Message(in_folder), AllOf(HasSubstr("at size tiny: PyTorch "), HasSubstr(": ")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "pawl_baseline.py")) << "the folder is the user's";
  *bundle_.add_sizes() = Size("tiny", 8);
  bundle_.add_baseline_files()->set_path("in/baseline.py");
  bundle_.mutable_baseline_files(0)->set_text(script);
  bundle_.set_baseline_command(1, "in/baseline.py");
  EXPECT_THAT(Message(RunBaseline(bundle_, host_).status()), HasSubstr("at size tiny: PyTorch "));
}

TEST_F(RunBaselineTest, HandsTheWinnersCubinOver) {
  bundle_.add_baseline_files()->set_path("baseline.py");
  bundle_.mutable_baseline_files(0)->set_text(
      "import json, sys\n"
      "for line in sys.stdin:\n"
      "  winner = json.loads(line)['winner']\n"
      "  bytes = len(open(winner['cubin'], 'rb').read())\n"
      "  print(json.dumps({'size': 'main', 'log_ratios': [bytes] * 5, 'baseline_us': 2, 'best_us': 1}))\n");
  BuiltSize best;
  best.plan = WinnersPlan();
  best.cubin = std::make_shared<const std::string>("cubin\0with a zero", 17);
  const absl::StatusOr<v1::BesideBaseline> beside = RunBaselineBeside(bundle_, best, host_);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->log_ratios(0), 17);
  EXPECT_EQ(beside->size(), "main");
}

// The files of a script that says whether NumPy was imported before it began.
void AddWarmScript(v1::Bundle* bundle) {
  bundle->add_baseline_files()->set_path("in/baseline.py");
  bundle->mutable_baseline_files(0)->set_text(
      "import json, sys\n"
      "warm = 'numpy' in sys.modules\n"
      "import pawl_baseline\n"
      "for line in sys.stdin:\n"
      "  asked = json.loads(line)\n"
      "  answer = {'size': asked['size'], 'graph_us': 1, 'event_us': 2, 'what': 'warm' if warm else 'cold'}\n"
      "  if 'winner' in asked:\n"
      "    bytes = len(open(asked['winner']['cubin'], 'rb').read())\n"
      "    answer = {'size': 'main', 'log_ratios': [bytes] * 5, 'baseline_us': 2, 'best_us': 1 + warm}\n"
      "  print(json.dumps(answer))\n");
  bundle->set_baseline_command(0, ProblemProcess::DefaultPython());
  bundle->set_baseline_command(1, "in/baseline.py");
  *bundle->add_sizes() = Size("tiny", 8);
}

TEST_F(RunBaselineTest, RunsAPythonScriptWhereEverythingIsImported) {
  ProcessOptions numpy;
  numpy.argv = {ProblemProcess::DefaultPython(), "-c", "import numpy"};
  const absl::StatusOr<ProcessResult> found = RunProcess(numpy);
  if (!found.ok() || !found->ok()) GTEST_SKIP() << ProblemProcess::DefaultPython() << " has no NumPy: set PAWL_PYTHON";
  const Fd shared(memfd_create("pawl-test", MFD_CLOEXEC));
  ProblemProcess::Options options;
  options.shared_fd = shared.get();
  ProblemProcess python(options);
  host_.python = &python;
  AddWarmScript(&bundle_);
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = RunBaseline(bundle_, host_);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(0).what(), "warm");
  BuiltSize best;
  best.plan = WinnersPlan();
  best.cubin = std::make_shared<const std::string>("cubin\0with a zero", 17);
  const absl::StatusOr<v1::BesideBaseline> beside = RunBaselineBeside(bundle_, best, host_);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->log_ratios(0), 17);
  EXPECT_EQ(beside->best_us(), 2) << "warm, too";
  // What fails there fails as it does elsewhere.
  bundle_.mutable_baseline_files(0)->set_text("raise ValueError('no such device')\n");
  const absl::Status status = RunBaseline(bundle_, host_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("exited with code 1"), HasSubstr("ValueError: no such device")));
}

TEST_F(RunBaselineTest, RunsAPythonScriptByItselfWhereThatInterpreterDoesNotStart) {
  ProblemProcess::Options options;
  options.shared_fd = 1 << 20;  // no such descriptor
  ProblemProcess python(options);
  host_.python = &python;
  AddWarmScript(&bundle_);
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = RunBaseline(bundle_, host_);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(0).what(), "cold");
}

TEST_F(RunBaselineTest, PutsNoFileOutsideOfItsFolder) {
  for (const char* path :
       {"../pawl-baseline-outside", "/tmp/pawl-baseline-outside", "a/../../pawl-baseline-outside", ""}) {
    v1::Bundle bundle = bundle_;
    bundle.add_baseline_files()->set_path(path);
    EXPECT_THAT(Message(RunBaseline(bundle, host_).status()), HasSubstr("outside of the bundle")) << path;
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
