// T4 results and T1 problems as bundles and recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "cli/import/imported_bundle.h"
#include "cli/import/imported_space.h"
#include "cli/import/python_condition.h"
#include "cli/import/t1_file.h"
#include "cli/import/t4_file.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "worker/process/temporary_folder.h"
#include "worker/replay/replay_device.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::filesystem::path Golden(const std::string& file) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests/cli/golden/t4" / file;
}

class ImportTest : public testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  absl::StatusOr<T4File> Read(const std::string& results, const std::string& metadata = "{}") const {
    return ReadT4(Write("x.json", R"({"metadata": )" + metadata + R"(, "results": [)" + results + "]}"));
  }
  std::string Error(const std::string& results, const std::string& metadata = "{}") const {
    return std::string(Read(results, metadata).status().message());
  }

  const TemporaryFolder folder_{"pawl-import-"};
};

constexpr char kGood[] =
    R"({"configuration": {"A": 1}, "times": {"runtimes": [2.0, 8.0]}, "invalidity": "correct", "correctness": 1})";

TEST_F(ImportTest, ReadsCacheFilesOfKernelTuner) {
  const std::string cache =
      R"({"device_name": "NVIDIA A100", "kernel_name": "conv", "objective": "time",
          "tune_params_keys": ["block", "mode"], "tune_params": {"block": [16, 32, 64], "mode": ["a"]},
          "cache": {
            "16,a": {"block": 16, "mode": "a", "time": 3.5, "times": [3.0, 4.0], "compile_time": 900.0,
                     "verification_time": 10, "timestamp": "2026-01-02T03:04:05.678+00:00"},
            "32,a": {"block": 32, "mode": "a", "time": "RuntimeFailedConfig", "times": []},
            "48,a": {"block": 48, "mode": "a", "time": 1e20},
            "64,a": {"block": 64, "mode": "a", "time": "CompilationFailedConfig"})";
  for (const std::string end : {"}}", ",", "\n"}) {
    const absl::StatusOr<T4File> file = ReadT4(Write("cache.json", cache + end));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->gpu, "NVIDIA A100");
    EXPECT_THAT(file->assumed, IsEmpty());
    ASSERT_THAT(file->results, SizeIs(4));
    EXPECT_THAT(file->results[0].runtimes_us, ElementsAre(3000, 4000));
    EXPECT_DOUBLE_EQ(file->results[0].compile_seconds, 0.9);
    EXPECT_EQ(file->results[0].configuration.at("mode").text, "a");
    EXPECT_EQ(file->results[1].invalidity, "runtime");
    EXPECT_EQ(file->results[2].invalidity, "runtime");
    EXPECT_EQ(file->results[3].invalidity, "compile");
  }
  EXPECT_THAT(
      std::string(ReadT4(Write("cache.json", R"({"tune_params_keys": ["A"], "cache": {"1": {"B": 1, "time": 2}}})"))
                      .status()
                      .message()),
      HasSubstr("A is null"));
}

TEST_F(ImportTest, ReadsResultsOfTheHub) {
  const absl::StatusOr<T4File> file = ReadT4(Golden("convolution_A100.t4.json.gz"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->results, SizeIs(128));
  EXPECT_THAT(file->assumed, IsEmpty());
  const T4Result& first = file->results.front();
  EXPECT_EQ(first.configuration.at("block_size_x").whole, 16);
  EXPECT_THAT(first.runtimes_us, SizeIs(16));
  EXPECT_GT(first.runtimes_us[0], 1000) << "microseconds";
  EXPECT_LT(first.runtimes_us[0], 10000);
  EXPECT_NEAR(first.compile_seconds, 0.8, 0.5);
  EXPECT_EQ(first.timestamp.substr(0, 10), "2023-12-22");
  int failed = 0;
  for (const T4Result& result : file->results) {
    if (result.invalidity == "correct") continue;
    ++failed;
    EXPECT_EQ(result.invalidity, "runtime");
    EXPECT_EQ(result.error, "RuntimeFailedConfig");
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(ImportTest, TakesTheObjectiveWhereThereAreNoSamples) {
  const absl::StatusOr<T4File> file =
      Read(R"({"configuration": {"A": 1}, "times": {}, "invalidity": "correct", "correctness": 1,
               "measurements": [{"name": "energy", "value": 7, "unit": "J"}, {"name": "time", "value": 3, "unit": "us"}]})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->results[0].runtimes_us, ElementsAre(3));
  EXPECT_THAT(file->assumed, IsEmpty()) << "the measurement has its unit";
}

TEST_F(ImportTest, TakesTheUnitThatIsNearest) {
  const auto runtime = [&](const std::string& times, const std::string& measurement, const std::string& metadata) {
    const absl::StatusOr<T4File> file = Read(R"({"configuration": {"A": 1}, "invalidity": "correct", "times": )" +
                                                 times + R"(, "measurements": [)" + measurement + "]}",
                                             metadata);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? file->results[0].runtimes_us[0] : 0;
  };
  const std::string ns = R"({"name": "time", "value": 3, "unit": "ns"})";
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [3], "unit": "s"})", ns, R"({"timeunit": "us"})"), 3e6);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [3]})", ns, R"({"timeunit": "us"})"), 3);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [3]})", ns, "{}"), 3e-3);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [3]})", R"({"name": "time", "value": 3})", "{}"), 3e3);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [2, 4]})", R"({"name": "gpu_time", "value": 3, "unit": "ns"})", "{}"), 2e-3);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [0.5, 0.51]})",
                           R"({"name": "compile_time", "value": 1, "unit": "s"},
                              {"name": "runtime", "value": 0.505, "unit": "us"})",
                           "{}"),
                   0.5);
  EXPECT_DOUBLE_EQ(runtime(R"({"runtimes": [3]})", R"({"name": "compile_time", "value": 3, "unit": "s"},)" + ns, "{}"),
                   3e-3);
  EXPECT_THAT(Read(kGood)->assumed, ElementsAre(HasSubstr("milliseconds")));
  const absl::StatusOr<T4File> another =
      Read(R"({"configuration": {"A": 1}, "invalidity": "correct", "times": {"runtimes": [0.5, 0.7]},
               "measurements": [{"name": "compile_time", "value": 1, "unit": "s"}]})");
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_DOUBLE_EQ(another->results[0].runtimes_us[0], 500) << "the unit of another measurement is not theirs";
  EXPECT_THAT(another->assumed, ElementsAre(HasSubstr("milliseconds")));
  EXPECT_THAT(Error(R"({"configuration": {"A": 1}, "invalidity": "correct", "times": {"unit": "J", "runtimes": [1]}})"),
              HasSubstr("the unit \"J\" of its times"));
}

TEST_F(ImportTest, NamesVariablesThatOtherTunersCallOtherwise) {
  const absl::StatusOr<T4File> file =
      Read(R"({"configuration": {"block-size": 64, "min": 1, "2d": 1, "SIZE_X": 4, "SM_COUNT": 2, "ok": 1},
               "times": {"runtimes": [1]}, "invalidity": "correct"})");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*file, std::nullopt, {"block-size=64"});
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(VariantText(space->VariantOf(file->results[0])),
            "block_size=64 ok=1 p_2d=1 p_SIZE_X=4 p_SM_COUNT=2 p_min=1");
  const Imported imported = {"odd", "x.json", "", ""};
  const std::string toml = ImportedToml(imported, *file, *space);
  EXPECT_THAT(toml, HasSubstr("# block-size of the results\n[[variable]]\nname   = \"block_size\"\n"));
  Write("kernel.toml", toml);
  Write(kImportedSource, ImportedSource(imported));
  for (const Problem& mistake : ReadBundle(folder_.path()).problems) ADD_FAILURE() << FormatProblem(mistake);
}

TEST_F(ImportTest, KeepsConditionsOnParametersThatWereRenamed) {
  const auto result = [](int min, int size) {
    return absl::StrFormat(R"({"configuration": {"min": %d, "SIZE_X": %d, "A": 1}, "invalidity": "correct",
                               "times": {"runtimes": [1]}})",
                           min, size);
  };
  const absl::StatusOr<T4File> file = Read(result(1, 4) + "," + result(2, 2));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto whole = [](int value) { return *ParameterValue::Of(value); };
  T1Problem problem;
  problem.parameters = {{"min", {whole(1), whole(2)}, {}}, {"SIZE_X", {whole(2), whole(4)}, {}}, {"A", {whole(1)}, {}}};
  problem.conditions = {"SIZE_X * A <= 4", "min(SIZE_X, 4) >= A", "min <= 2"};
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*file, problem, {});
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_THAT(space->left_out(), IsEmpty());
  ASSERT_EQ(space->bundle().constraints_size(), 3);
  EXPECT_EQ(space->bundle().constraints(0).that(), "p_SIZE_X * A <= 4");
  EXPECT_EQ(space->bundle().constraints(1).that(), "min( p_SIZE_X , 4 ) >= A") << "the function";
  EXPECT_EQ(space->bundle().constraints(2).that(), "p_min <= 2");
}

TEST_F(ImportTest, LetsTheLastOfSeveralResultsCount) {
  const absl::StatusOr<T4File> file =
      Read(std::string(kGood) + R"(,{"configuration": {"A": 2}, "times": {}, "invalidity": "compile"},
               {"configuration": {"A": 1.0}, "times": {"runtimes": [5]}, "invalidity": "correct"})",
           R"({"timeunit": "us"})");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->results, SizeIs(2));
  EXPECT_THAT(file->results[1].runtimes_us, ElementsAre(5));
  EXPECT_THAT(file->assumed, ElementsAre(HasSubstr("1 results repeat a configuration")));
}

TEST_F(ImportTest, SaysWhichResultIsWrongAndHow) {
  EXPECT_THAT(std::string(ReadT4(folder_.path() / "none").status().message()), HasSubstr("No such file"));
  EXPECT_THAT(std::string(ReadT4(folder_.path()).status().message()), HasSubstr("is a folder"));
  EXPECT_THAT(std::string(ReadT4(Write("x", "{")).status().message()), HasSubstr("not JSON"));
  EXPECT_THAT(std::string(ReadT4(Write("x", "[1]")).status().message()), HasSubstr("no list \"results\""));
  EXPECT_THAT(Error(""), HasSubstr("are empty"));
  EXPECT_THAT(Error(kGood, R"({"timeunit": "fortnights"})"), HasSubstr("timeunit \"fortnights\""));
  const std::string good = kGood;
  EXPECT_THAT(Error(good + R"(,{"configuration": {"A": 1}, "times": {}, "invalidity": "odd"})"),
              HasSubstr("results[1]: invalidity is \"odd\"; expected correct, "));
  EXPECT_THAT(Error(good + R"(,{"configuration": {"B": 1}, "times": {}, "invalidity": "compile"})"),
              HasSubstr("results[1]: its configuration has no A"));
  EXPECT_THAT(Error(R"({"configuration": {"A": [1]}, "times": {}, "invalidity": "compile"})"),
              HasSubstr("results[0]: A is array"));
  EXPECT_THAT(Error(R"({"configuration": {"A": 1}, "times": {"runtimes": [0]}, "invalidity": "correct"})"),
              HasSubstr("its time is 0"));
  EXPECT_THAT(Error(R"({"configuration": {"A": 1}, "times": {}, "invalidity": "correct"})"),
              HasSubstr("neither a runtime nor a measurement"));
  EXPECT_THAT(Error("7"), HasSubstr("has no configuration"));
}

TEST_F(ImportTest, SaysWhatOtherFilesOfTunersAre) {
  const auto error = [&](const std::string& text) {
    return std::string(ReadT4(Write("other.json", text)).status().message());
  };
  EXPECT_THAT(error(R"({"Metadata": {}, "Results": [{"KernelName": "k", "Configuration": []}]})"),
              HasSubstr("KTT's own format"));
  EXPECT_THAT(error(R"({"ConfigurationSpace": {"TuningParameters": []}})"), HasSubstr("name it by --problem"));
  EXPECT_THAT(error("a,b,time\n1,2,3\n"), HasSubstr("it is not JSON; expected T4 results"));
  EXPECT_THAT(std::string(ImportedSpace::Make(*Read(kGood), std::nullopt, {"A"}).status().message()),
              HasSubstr("--start A: expected VARIABLE=VALUE"));
}

TEST_F(ImportTest, TurnsPythonIntoConstraints) {
  const std::map<std::string, std::string> names = {{"a", "a"}, {"b", "b"}, {"c_d", "p_c"}};
  EXPECT_EQ(*ConstraintOf("a==0 or b % 32 != 0", names), "a == 0 || b % 32 != 0");
  EXPECT_EQ(*ConstraintOf("c_d < a", names), "p_c < a");
  EXPECT_EQ(*ConstraintOf("(a*b<=1024) and min(a,b) > 2.5", names), "( a * b <= 1024 ) && min( a , b ) > 2.5");
  for (const char* beyond : {"a // 2 == 1", "a ** 2 > 1", "1 < a < 3", "a in [1, 2]", "not a == 1", "c == 1", "(a == 1",
                             "a == 1)", "", "a == 'x'"}) {
    EXPECT_FALSE(ConstraintOf(beyond, names).ok()) << beyond;
  }
}

TEST_F(ImportTest, TakesTheSpaceOfAProblem) {
  const absl::StatusOr<T4File> results = ReadT4(Golden("convolution_A100.t4.json.gz"));
  const absl::StatusOr<T1Problem> problem = ReadT1(Golden("convolution.t1.json"));
  ASSERT_TRUE(problem.ok()) << problem.status();
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*results, *problem, {});
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->bundle().variables_size(), 10);
  EXPECT_EQ(space->bundle().constraints_size(), 4);
  EXPECT_THAT(space->left_out(), IsEmpty());
  EXPECT_EQ(space->bundle().sizes(0).values().at("problem_size_x"), 4096);
  const T4Result& start = results->results[space->start()];
  EXPECT_EQ(start.configuration.at("block_size_y").whole, 16) << "the problem's default";
  EXPECT_EQ(start.configuration.at("use_padding").whole, 1);

  const absl::StatusOr<ImportedSpace> alone = ImportedSpace::Make(*results, std::nullopt, {"block_size_x=48"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(alone->bundle().variables(1).values(), ElementsAre(4, 16)) << "only what the results have";
  EXPECT_EQ(results->results[alone->start()].configuration.at("block_size_x").whole, 48);
  EXPECT_THAT(std::string(ImportedSpace::Make(*results, std::nullopt, {"x=1"}).status().message()),
              HasSubstr("there is no x; expected block_size_x, "));
  EXPECT_THAT(std::string(ImportedSpace::Make(*results, std::nullopt, {"block_size_x=5"}).status().message()),
              HasSubstr("none of the correct results is the --start"));
}

TEST_F(ImportTest, LeavesOutConditionsThatForbidWhatWasMeasured) {
  T1Problem problem;
  problem.parameters = {{"A", {*ParameterValue::Of(1), *ParameterValue::Of(2)}, std::nullopt}};
  problem.conditions = {"A == 2", "A // 2 == 0", "A >= 1"};
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*Read(kGood), problem, {});
  ASSERT_TRUE(space.ok()) << space.status();
  ASSERT_EQ(space->bundle().constraints_size(), 1);
  EXPECT_EQ(space->bundle().constraints(0).that(), "A >= 1");
  ASSERT_THAT(space->left_out(), SizeIs(2));
  EXPECT_EQ(space->left_out()[0].second, "it forbids configurations that were measured");
}

TEST_F(ImportTest, RefusesAProblemOfAnotherKernel) {
  T1Problem problem;
  problem.parameters = {{"B", {*ParameterValue::Of(1)}, std::nullopt}};
  EXPECT_THAT(std::string(ImportedSpace::Make(*Read(kGood), problem, {}).status().message()),
              HasSubstr("parameter B that the results do not have"));
  problem.parameters = {{"A", {*ParameterValue::Of(7)}, std::nullopt}};
  EXPECT_THAT(std::string(ImportedSpace::Make(*Read(kGood), problem, {}).status().message()),
              HasSubstr("the results have A=1, which the problem does not"));
  EXPECT_THAT(std::string(ReadT1(Write("p.json", R"({"ConfigurationSpace": {"TuningParameters":
                  [{"Name": "A", "Values": "[2**i for i in range(3)]"}]}})"))
                              .status()
                              .message()),
              HasSubstr("the Values of A are not a list of literals"));
}

TEST_F(ImportTest, MakesNumbersOfFlagsAndPlacesOfTexts) {
  const auto result = [](const char* values) {
    return std::string(R"({"configuration": )") + values +
           R"(, "times": {"runtimes": [1]}, "invalidity": "correct", "correctness": 1})";
  };
  const absl::StatusOr<T4File> file = Read(result(R"({"F": true, "T": "row", "X": 0.5, "I": 4.0})") + "," +
                                           result(R"({"F": false, "T": "col", "X": 0.25, "I": 2})"));
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*file, std::nullopt, {});
  ASSERT_TRUE(space.ok()) << space.status();
  const v1::Variant first = space->VariantOf(file->results[0]);
  EXPECT_EQ(VariantText(first), "F=1 I=4 T=0 X=1");
  const std::string toml = ImportedToml({"mixed", "x.json", "", ""}, *file, *space);
  EXPECT_THAT(toml, HasSubstr("# 0 is row, 1 is col\n[[variable]]\nname   = \"T\"\nvalues = [0, 1]\nstart  = 0\n"));
  EXPECT_THAT(toml, HasSubstr("# 0 is 0.25, 1 is 0.5\n"));
}

TEST_F(ImportTest, WritesABundleThatTheReaderTakesAndARecordingThatReplays) {
  const absl::StatusOr<T4File> results = ReadT4(Golden("convolution_A100.t4.json.gz"));
  const absl::StatusOr<T1Problem> problem = ReadT1(Golden("convolution.t1.json"));
  const absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*results, *problem, {});
  const Imported imported = {"convolution", "convolution_A100.t4.json.gz", "convolution_kernel", "A100"};
  Write("kernel.toml", ImportedToml(imported, *results, *space));
  Write(kImportedSource, ImportedSource(imported));
  BundleReading reading = ReadBundle(folder_.path());
  for (const Problem& mistake : reading.problems) ADD_FAILURE() << FormatProblem(mistake);
  const auto bundle = std::make_shared<const v1::Bundle>(reading.bundle);
  EXPECT_EQ(bundle->constraints_size(), 4);

  const Recording recording = ImportedRecording(imported, *results, *space, *bundle);
  EXPECT_THAT(recording.variants, SizeIs(128));
  ASSERT_TRUE(WriteRecording(folder_.path() / "convolution.t4.jsonl.gz", recording).ok());
  absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open({{folder_.path()}, 0});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->device().label(), "replay of an A100, recorded on 2023-12-22");
  EXPECT_FALSE((*device)->device().counters());

  class Nobody : public TrialObserver {
   public:
    void Report(v1::Stage, int, int, const std::string&) override {}
    bool stopped() const override { return false; }
  } nobody;
  const v1::Variant start = StartVariant(*bundle);
  const auto answer = [&](const v1::Variant& variant) {
    v1::Trial trial;
    *trial.mutable_variant() = variant;
    *trial.mutable_parent() = start;
    trial.set_size("recorded");
    absl::StatusOr<std::unique_ptr<PreparedTrial>> prepared = (*device)->Prepare(trial, bundle, nobody);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return (*device)->Run(**prepared, nobody)->result;
  };
  for (const T4Result& result : results->results) {
    const v1::TrialResult replayed = answer(space->VariantOf(result));
    EXPECT_EQ(replayed.passed_over(), "");
    EXPECT_EQ(replayed.build(), "") << "nobody knows how it was built";
    EXPECT_FALSE(replayed.profiled());
    if (result.invalidity != "correct") {
      EXPECT_EQ(replayed.failure().check(), v1::CHECK_LAUNCH);
      EXPECT_THAT(replayed.failure().message(), HasSubstr("RuntimeFailedConfig"));
      continue;
    }
    double sum = 0;
    for (const double us : result.runtimes_us) sum += std::log(us);
    EXPECT_NEAR(replayed.warm_us(), std::exp(sum / 16), 0.01 * replayed.warm_us()) << "its noise is small";
    EXPECT_TRUE(replayed.evidence().partial());
    EXPECT_THAT(replayed.evidence().partial_reason(), HasSubstr("times only"));
  }
  v1::Variant other = start;
  (*other.mutable_values())["use_padding"] = 7;
  EXPECT_THAT(answer(other).passed_over(), HasSubstr("not in the recording"));
}

}  // namespace
}  // namespace pawl
