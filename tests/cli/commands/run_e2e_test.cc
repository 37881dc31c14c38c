// Whole campaigns on the replay device, by the programs as they are installed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "pawl/v1/campaign_service.pb.h"
#include "tests/cli/pawl_program.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"
#include "tests/promises/soak.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"
#include "worker/process/temporary_folder.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

std::string Slurp(const std::filesystem::path& path) {
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  return buffer.str();
}

// A program that runs on while the test looks; its standard error is in a file.
class Running {
 public:
  Running(std::vector<std::string> argv, std::map<std::string, std::string> env, std::filesystem::path err)
      : err_(std::move(err)) {
    const Fd nothing(open("/dev/null", O_RDWR));
    const Fd file(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    SpawnOptions options;
    options.argv = std::move(argv);
    options.env = std::move(env);
    options.fds = {{nothing.get(), 0}, {nothing.get(), 1}, {file.get(), 2}};
    absl::StatusOr<pid_t> pid = Spawn(options);
    EXPECT_TRUE(pid.ok()) << pid.status();
    if (pid.ok()) pid_ = *pid;
  }
  ~Running() {
    if (pid_ != 0) End(SIGKILL);
  }

  pid_t pid() const { return pid_; }
  std::string err() const { return Slurp(err_); }
  bool Says(const std::string& text) const {
    for (int i = 0; i < 3000 && !absl::StrContains(err(), text) && !HasEnded(pid_); ++i) usleep(10'000);
    return absl::StrContains(err(), text);
  }
  ProcessEnd End(int signal) {
    if (pid_ > 0) kill(pid_, signal);
    return Reap(std::exchange(pid_, 0));
  }
  ProcessEnd Wait() { return Reap(std::exchange(pid_, 0)); }

 private:
  const std::filesystem::path err_;
  pid_t pid_ = 0;
};

class RunTest : public testing::Test {
 protected:
  ProcessResult Run(const std::vector<std::string>& arguments) const { return Pawl(arguments, env_); }
  std::unique_ptr<Running> Start(const std::string& program, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {BuiltProgram(program)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return std::make_unique<Running>(argv, env_, home_.path() / (program + ".err"));
  }
  std::unique_ptr<Running> StartOrchestrator() const {
    std::filesystem::create_directories(database_.parent_path());
    std::unique_ptr<Running> daemon =
        Start("pawl-orchestrator", {"--listen", socket_, "--database", database_.string()});
    EXPECT_TRUE(daemon->Says("listening on")) << daemon->err();
    return daemon;
  }
  static std::filesystem::path Attention() {
    const char* source = std::getenv("PAWL_SOURCE_DIR");
    return std::filesystem::path(source == nullptr ? "." : source) / "kernels/attention";
  }

  const TemporaryFolder home_{"pawl-home-"};
  const std::filesystem::path database_ = home_.path() / ".local/share/pawl/pawl.db";
  const std::string socket_ = absl::StrCat("unix:", (home_.path() / "socket").string());
  const std::map<std::string, std::string> env_ = {
      {"HOME", home_.path().string()}, {"XDG_DATA_HOME", ""}, {"XDG_CONFIG_HOME", ""},
      {"PAWL_DATABASE", ""},           {"PAWL_CONFIG", ""},   {"PAWL_ORCHESTRATOR", ""}};
};

constexpr char kWithoutVariables[] = R"(
name    = "scale_rows"
source  = "scale_rows.cu"
summary = "out = 2 * in"
[goal]
size    = "main"
speedup = 1.5
[[size]]
name = "main"
ROWS = 1024
[[tensor]]
name  = "in"
type  = "f32"
shape = ["ROWS"]
fill  = "uniform"
[[tensor]]
name  = "out"
type  = "f32"
shape = ["ROWS"]
role  = "output"
[[launch]]
entry     = "scale_rows"
grid      = ["ROWS"]
block     = [32]
arguments = ["in", "out"]
[work]
flops = "ROWS"
bytes = "8*ROWS"
[reference]
source = "reference.cu"
[[reference.launch]]
entry     = "scale_rows_reference"
grid      = ["ROWS"]
block     = [32]
arguments = ["in", "out"]
[tolerance]
absolute = 0.01
relative = 0.001
)";

// A bundle whose only variant was recorded.
struct Recorded {
  Recorded() {
    folder.Write("kernel.toml", kWithoutVariables);
    const BundleReading reading = ReadBundle(folder.path());
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    Recording recording;
    recording.header.set_bundle("scale_rows");
    recording.header.set_bundle_hash(BundleHash(reading.bundle));
    recording.header.set_size("main");
    recording.header.set_planned(1);
    recording.header.set_date("2026-11-16T10:00:00Z");
    recording.header.mutable_gpu()->set_name("NVIDIA H200");
    recording.header.mutable_start();
    v1::RecordedVariant variant;
    variant.mutable_variant();
    variant.set_warm_us(10);
    variant.set_cold_us(12);
    for (int i = 0; i < 12; ++i) {
      v1::PairSample& pair = *variant.add_pairs();
      pair.set_parent_us(10);
      pair.set_candidate_us(10);
    }
    recording.Put(variant);
    EXPECT_TRUE(WriteRecording(recordings.path() / "scale_rows.jsonl.gz", recording).ok());
  }

  const BundleFolder folder;
  const TemporaryFolder recordings{"pawl-recordings-"};
};

TEST_F(RunTest, MeasuresTheStartOfABundleWithoutVariablesAndSaysWhatToDoNext) {
  const Recorded recorded;
  const ProcessResult check = Run({"check", recorded.folder.path().string(), "--no-build"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("start: no variables; campaigns wait for proposed edits"));
  const ProcessResult run = Run({"run", recorded.folder.path().string(), "--device", "replay", "--recordings",
                                 recorded.recordings.path().string()});
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("the start variant is measured, and scale_rows has no variables that Pawl could change: "
                        "campaigns/1 waits for proposals"));
  for (const char* next : {"pawl propose 1", "pawl agent 1", "[[variable]]"}) EXPECT_THAT(run.err, HasSubstr(next));
  const v1::Campaign campaign = Parse<v1::Campaign>(Run({"show", "1", "--json"}).out);
  EXPECT_EQ(campaign.state(), v1::PAUSED);
  EXPECT_EQ(campaign.best(), 0);
  EXPECT_NEAR(campaign.start_us(), 10, 0.02) << "a replay adds the noise of a process";
  const ProcessResult situation = Run({"situation", "1"});
  EXPECT_THAT(situation.out, HasSubstr("none: only edits of the source can be proposed"));
  EXPECT_THAT(situation.out, Not(HasSubstr("VARIABLE=VALUE")));
  EXPECT_THAT(Run({"history", "1"}).out, HasSubstr("start"));
}

TEST_F(RunTest, SaysOfAContractAloneThatItWaitsForItsDeviceCode) {
  const BundleFolder folder;
  folder.Write("kernel.toml", kContractToml);
  const ProcessResult check = Run({"check", folder.path().string(), "--no-build"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.err, HasSubstr("a contract alone, without source and [[launch]]: the first proposal that passes "
                                   "validation is the start of its campaign"));
  const ProcessResult run = Run({"run", folder.path().string(), "--device", "replay"});
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_THAT(run.err, HasSubstr("copies is a contract alone, without device code: campaigns/1 waits for proposals"));
  for (const char* next : {"pawl resume 1", "pawl propose 1", "pawl agent 1"}) EXPECT_THAT(run.err, HasSubstr(next));
  EXPECT_EQ(Parse<v1::Campaign>(Run({"show", "1", "--json"}).out).state(), v1::PAUSED);
  const std::string checkout = (folder.path() / "old").string();
  const ProcessResult situation = Run({"situation", "1", "--checkout", checkout});
  EXPECT_EQ(situation.exit_code, 0) << situation.err;
  EXPECT_THAT(situation.out, HasSubstr("start      none yet: it is a contract alone."));
  EXPECT_THAT(situation.out, HasSubstr("  tensor     out: f32 [N], output\n"));
  EXPECT_THAT(Slurp(folder.path() / "old/kernel.toml"),
              HasSubstr("# The part of kernel.toml that an edit may change."));
  EXPECT_THAT(Run({"best", "1"}).err, HasSubstr("propose its device code"));
  EXPECT_THAT(Run({"record", folder.path().string()}).err, HasSubstr("it has no device code to measure"));
}

TEST_F(RunTest, ImprovesAKernelAndLeavesEverythingToLookAt) {
  const ProcessResult run = Run({"run", Attention().string(), "--device", "replay", "--iterations", "10"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("on replay of an NVIDIA H200, recorded on 20"));
  EXPECT_THAT(run.out, HasSubstr("campaigns/1 finished"));
  EXPECT_THAT(run.out, HasSubstr("database   " + database_.string()));
  EXPECT_THAT(run.out, HasSubstr("pawl history 1"));
  const ProcessResult situation = Run({"situation", "1"});
  EXPECT_EQ(situation.exit_code, 0) << situation.err;
  EXPECT_THAT(situation.out, HasSubstr("campaigns/1: attention at main, finished"));
  EXPECT_THAT(situation.out, Not(HasSubstr("pawl propose"))) << "it has ended";
  const std::filesystem::path page = database_.parent_path() / "reports/campaign-1.html";
  EXPECT_THAT(run.out, HasSubstr("report     " + page.string()));
  EXPECT_THAT(Slurp(page), HasSubstr("</html>"));

  const ProcessResult history = Run({"history", "1", "--json"});
  EXPECT_EQ(history.exit_code, 0) << history.err;
  const std::vector<std::string> lines = Lines(history.out);
  // The recording is a sample: changes that it lacks are no part of the ten.
  const auto untried = std::count_if(
      lines.begin(), lines.end(), [](const std::string& line) { return absl::StrContains(line, "\"untried\":true"); });
  ASSERT_THAT(lines, SizeIs(11 + untried));
  for (const char* field : {"\"name\":\"campaigns/1/iterations/0\"", "\"number\":0,", "\"variant\":{",
                            "\"verdict\":", "\"reason\":", "\"timeUs\":", "\"speedupOverStart\":",
                            "\"speedupOverBaseline\":", "\"stages\":[{\"stage\":", "\"device\":\"replay of"}) {
    EXPECT_THAT(lines[0], HasSubstr(field));
  }
  EXPECT_THAT(lines[0], Not(HasSubstr("\"parent\":")));
  for (const char* field : {"\"parent\":0", "\"change\":{\"variable\":", "\"from\":", "\"to\":", "\"comparison\":",
                            "\"speedupOverParent\":"}) {
    EXPECT_THAT(lines[1], HasSubstr(field));
  }
  for (const std::string& line : lines) {
    EXPECT_THAT(line, Not(HasSubstr("\"evidence\":")));
    EXPECT_THAT(line, Not(HasSubstr("\"pairs\":[")));
    if (absl::StrContains(line, "\"untried\":true")) continue;
    EXPECT_GE(Parse<v1::Iteration>(line).stages_size(), 1);
  }
  EXPECT_THAT(Run({"history", "1"}).out, HasSubstr("campaigns/1: attention at main, finished; on replay of an NVIDIA"));

  const v1::Campaign campaign = Parse<v1::Campaign>(Run({"show", "1", "--json"}).out);
  EXPECT_EQ(campaign.state(), v1::FINISHED);
  EXPECT_GT(campaign.best(), 0);
  const std::string best = absl::StrCat(campaign.best());
  EXPECT_THAT(Run({"show", "1", best}).out, HasSubstr("attention_forward: grid "));
  EXPECT_THAT(Run({"best", "1"}).out, HasSubstr("kept changes:"));
  const std::filesystem::path winner = home_.path() / "winner";
  EXPECT_THAT(Run({"best", "1", "--output", winner.string()}).out, HasSubstr("written  " + winner.string()));
  EXPECT_THAT(Slurp(winner / "source/attention.cu"), HasSubstr("#define TILE_M "));
  EXPECT_EQ(Run({"best", "1", "--output", winner.string()}).exit_code, 1);
  EXPECT_EQ(Parse<v1::BestVariant>(Run({"best", "1", "--json"}).out).bundle().name(), "attention");
  EXPECT_THAT(Run({"diff", "1", "0", best}).out, HasSubstr("speedup over the start"));
  const v1::Report report = Parse<v1::Report>(Run({"report", "1", "--format", "json"}).out);
  EXPECT_EQ(report.iterations_size(), 11 + untried);
  EXPECT_EQ(report.path(report.path_size() - 1), campaign.best());
  EXPECT_GT(report.roofline().points_size(), 1);
  EXPECT_GT(report.speed_of_light_size(), 3);
  EXPECT_GT(report.stages_size(), 2);
  EXPECT_GT(report.next_size(), 0);
  EXPECT_GT(report.patterns_size(), 0);
  EXPECT_GE(report.sizes_size(), 4);
  EXPECT_THAT(report.build(), HasSubstr("-DTILE_M="));
  EXPECT_THAT(Run({"report", "1", "--format", "md"}).out, HasSubstr("## Rebuild the best variant"));
  EXPECT_THAT(Run({"history", "1", "--columns", "number,TILE_M,registers", "--sort", "-registers"}).out,
              HasSubstr(" #  TILE_M  registers\n"));
  EXPECT_THAT(Run({"history", "1", "--columns", "colour"}).err, HasSubstr("there is no column colour"));
  EXPECT_THAT(Run({"campaigns"}).out, testing::ContainsRegex("finished .* attention at main"));
  EXPECT_EQ(Run({"watch", "1"}).exit_code, 0);

  const ProcessResult verify = Run({"verify", "1"});
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_THAT(verify.out, HasSubstr(absl::StrCat("iteration ", best, " agrees")));
}

TEST_F(RunTest, EndsAtTheGoalAndSaysSoInJson) {
  const ProcessResult run =
      Run({"run", Attention().string(), "--device", "replay", "--goal", "0.3", "--json", "--no-progress"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Parse<v1::Campaign>(run.out).stop_reason(), v1::STOP_REASON_GOAL);
}

// PAWL_TLS_CA is set where somebody submits to a service with TLS.
TEST_F(RunTest, NeedsNoTlsForADatabaseOfItsOwn) {
  setenv("PAWL_TLS_CA", "/nowhere/ca.crt", 1);
  const ProcessResult run =
      Run({"run", Attention().string(), "--device", "replay", "--goal", "0.3", "--json", "--no-progress"});
  unsetenv("PAWL_TLS_CA");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(RunTest, SaysThatACampaignIsNotThereAndWhatToDo) {
  ASSERT_EQ(Run({"run", Attention().string(), "--device", "replay", "--iterations", "1"}).exit_code % 3, 0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"history", "9"}, {"show", "9"}, {"show", "1", "9"}, {"watch", "9"}}) {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 1) << command[0];
    EXPECT_THAT(result.err, HasSubstr("fix: "));
  }
}

TEST_F(RunTest, LeavesNoCampaignWithoutARecording) {
  BundleFolder folder;
  const std::filesystem::path empty = home_.path() / "empty", damaged = home_.path() / "damaged.jsonl.gz";
  std::filesystem::create_directories(empty);
  std::ofstream(damaged) << "no recording";
  const std::string shipped = (Attention().parent_path().parent_path() / "profiles/recordings").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{folder.path().string(), "--device", "replay"}, "no recording of this scale_rows at size "},
      {{folder.path().string(), "--recordings", shipped}, "no recording of this scale_rows at size "},
      {{Attention().string(), "--device", "replay", "--sizes", "main,medium,b4"},
       "no recording of this attention at size medium, b4 "},
      {{Attention().string(), "--device", "replay", "--recordings", empty.string()}, "no recordings to replay"},
      {{Attention().string(), "--device", "replay", "--recordings", damaged.string()}, "damaged.jsonl.gz"}};
  for (const auto& [arguments, why] : wrong) {
    std::vector<std::string> command = {"run"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const ProcessResult run = Run(command);
    EXPECT_EQ(run.exit_code, 4) << run.err;
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(database_)) << "no campaign, not even a database";
  }
}

// Every table is right by itself.
TEST_F(RunTest, SubmitAcceptsWhatCheckAcceptsAndNothingElse) {
  const std::unique_ptr<Running> daemon = StartOrchestrator();
  std::string launches;
  for (int i = 0; i < 300; ++i) {
    launches +=
        "[[launch]]\nentry = \"combine\"\ngrid = [\"ROWS\"]\nblock = [32, 1]\narguments = [\"partial\", \"out\"]\n";
  }
  struct Case {
    std::string name, from, to;
    bool good;
  };
  const std::vector<Case> cases = {
      {"as it is", "", "", true},
      {"an unknown key", "summary ", "sumary ", false},
      {"a start that is no value", "start   = 64", "start   = 65", false},
      {"a goal at no size", "size    = \"main\"", "size    = \"mian\"", false},
      {"300 launches", "[work]", launches + "[work]", true},
      {"more than 10,000 launches", "[work]",
       "[[launch]]\nentry = \"combine\"\ngrid = [\"ROWS\"]\nblock = [32, 1]\narguments = [\"partial\", \"out\"]\n"
       "repeat = 10001\n[work]",
       false},
      {"no variables", "", "", true},
  };
  for (const Case& one : cases) {
    BundleFolder folder;
    if (!one.from.empty()) folder.Replace(one.from, one.to);
    if (one.name == "no variables") folder.Write("kernel.toml", kWithoutVariables);
    const ProcessResult check = Run({"check", "--no-build", folder.path().string()});
    const ProcessResult submit = Run({"submit", folder.path().string()});
    EXPECT_EQ(check.exit_code == 0, one.good) << one.name << ": " << check.err;
    EXPECT_EQ(submit.exit_code == 0, one.good) << one.name << ": " << submit.err;
  }
}

TEST_F(RunTest, GivesUpWhereTheWorkerDoesNotStart) {
  const ProcessResult run = Run({"run", Attention().string(), "--device", "cuda:99"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_THAT(run.err, HasSubstr("pawl-worker"));
  EXPECT_EQ(Parse<v1::Campaign>(Run({"show", "1", "--json"}).out).state(), v1::CANCELLED);
}

TEST_F(RunTest, EndsCleanlyWhenInterrupted) {
  std::unique_ptr<Running> run =
      Start("pawl", {"run", Attention().string(), "--device", "replay", "--replay-speed", "1"});
  ASSERT_TRUE(run->Says("0  kept  ")) << run->err();
  const std::vector<pid_t> children = ChildrenOf(run->pid());
  EXPECT_THAT(children, SizeIs(2));
  const ProcessEnd end = run->End(SIGINT);
  EXPECT_EQ(end.exit_code, 130);
  for (const pid_t child : children) EXPECT_TRUE(IsGone(child));
  const v1::Campaign campaign = Parse<v1::Campaign>(Run({"show", "1", "--json"}).out);
  EXPECT_EQ(campaign.state(), v1::CANCELLED);
  EXPECT_THAT(campaign.message(), HasSubstr("interrupted"));
  EXPECT_THAT(Slurp(database_.parent_path() / "reports/campaign-1.html"), HasSubstr("cancelled: interrupted"));
}

TEST_F(RunTest, LeavesNoChildBehindWhenItIsKilled) {
  std::unique_ptr<Running> run =
      Start("pawl", {"run", Attention().string(), "--device", "replay", "--replay-speed", "1"});
  ASSERT_TRUE(run->Says("0  kept  ")) << run->err();
  const std::vector<pid_t> children = ChildrenOf(run->pid());
  EXPECT_THAT(children, SizeIs(2));
  run->End(SIGKILL);
  for (const pid_t child : children) EXPECT_TRUE(EndsSoon(child));
  const ProcessResult watch = Run({"watch", "1"});
  EXPECT_EQ(watch.exit_code, 1);
  EXPECT_THAT(watch.err, HasSubstr("campaigns/1 has not ended, but no orchestrator is running"));

  const ProcessResult next = Run({"run", Attention().string(), "--device", "replay", "--iterations", "3"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr("campaigns/1 is unfinished and continues"));
}

TEST_F(RunTest, JoinsAnOrchestratorThatHasTheDatabaseAndOutlivesIt) {
  std::unique_ptr<Running> daemon = StartOrchestrator();
  std::unique_ptr<Running> run =
      Start("pawl", {"run", Attention().string(), "--device", "replay", "--replay-speed", "4", "--iterations", "4"});
  ASSERT_TRUE(run->Says("joining the orchestrator at " + socket_)) << run->err();
  ASSERT_TRUE(run->Says("0  kept  ")) << run->err();
  daemon->End(SIGKILL);
  EXPECT_TRUE(run->Says("does not answer: reconnecting")) << run->err();
  EXPECT_EQ(run->Wait().exit_code, 0) << run->err();
  EXPECT_EQ(Parse<v1::Campaign>(Run({"show", "1", "--json"}).out).counts().tried(), 4);
}

TEST_F(RunTest, SharesADatabaseWithOtherRunsAndQueries) {
  std::unique_ptr<Running> first = Start("pawl", {"run", Attention().string(), "--device", "replay", "--iterations",
                                                  "2", "--replay-speed", "3", "--database", database_.string()});
  ASSERT_TRUE(first->Says("0  kept  ")) << first->err();
  std::vector<std::unique_ptr<Running>> queries;
  for (int i = 0; i < 8; ++i) {
    queries.push_back(std::make_unique<Running>(std::vector<std::string>{BuiltProgram("pawl"), "history", "1"}, env_,
                                                home_.path() / absl::StrCat("query", i)));
  }
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("replay of an NVIDIA H200"));
  for (const std::unique_ptr<Running>& query : queries) EXPECT_EQ(query->Wait().exit_code, 0) << query->err();
  EXPECT_EQ(first->Wait().exit_code, 0) << first->err();
  // Nobody has it open any more: each of these may find another's orchestrator, which may end at once.
  for (int i = 0; i < 8; ++i) {
    queries[i] = std::make_unique<Running>(std::vector<std::string>{BuiltProgram("pawl"), "history", "1"}, env_,
                                           home_.path() / absl::StrCat("query", i));
  }
  for (const std::unique_ptr<Running>& query : queries) EXPECT_EQ(query->Wait().exit_code, 0) << query->err();
}

TEST_F(RunTest, OptimisesAnImportedSpaceByTimingAlone) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path golden = std::filesystem::path(source == nullptr ? "." : source) / "tests/cli/golden/t4";
  const std::string folder = (home_.path() / "convolution").string();
  const std::vector<std::string> import = {"import",    (golden / "convolution_A100.t4.json.gz").string(),
                                           "--problem", (golden / "convolution.t1.json").string(),
                                           "--gpu",     "A100",
                                           "--start",   "use_shmem=0",
                                           "--output",  folder};
  const ProcessResult imported = Run(import);
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(imported.out, folder + "\n");
  EXPECT_THAT(imported.err, HasSubstr("128 configurations, 1 of them failed"));
  EXPECT_THAT(Run(import).err, HasSubstr("exists already"));
  const ProcessResult check = Run({"check", folder});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.err, HasSubstr("warning: imported.cu is not compiled: this bundle was imported"));

  const ProcessResult run =
      Run({"run", folder, "--device", "replay", "--recordings", folder, "--iterations", "60", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const v1::Campaign campaign = Parse<v1::Campaign>(run.out);
  EXPECT_EQ(campaign.state(), v1::FINISHED);
  EXPECT_EQ(campaign.device(), "replay of an A100, recorded on 2023-12-22");
  EXPECT_GT(campaign.speedup_over_start(), 2) << "the best recorded is 4.4 times as fast";
  for (const std::string& line : Lines(Run({"history", "1", "--json"}).out)) {
    EXPECT_FALSE(Parse<v1::Iteration>(line).profiled());
  }
  EXPECT_EQ(Run({"explain", "1"}).exit_code, 0);
  const ProcessResult report = Run({"report", "1", "--output", "-"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("the device has no counters"));
}

TEST_F(RunTest, ExplainsWhatItDid) {
  ASSERT_EQ(Run({"run", Attention().string(), "--device", "replay", "--iterations", "6"}).exit_code, 0);
  const ProcessResult campaign = Run({"explain", "1"});
  EXPECT_EQ(campaign.exit_code, 0) << campaign.err;
  EXPECT_THAT(campaign.out, HasSubstr("*   0  start\n"));
  EXPECT_THAT(campaign.out, HasSubstr("Rules: changes tried and kept"));
  const ProcessResult iteration = Run({"explain", "1", "1"});
  EXPECT_EQ(iteration.exit_code, 0) << iteration.err;
  EXPECT_THAT(iteration.out, HasSubstr("Findings in the evidence of iteration 0\n  "));
  EXPECT_THAT(iteration.out, HasSubstr("  chosen\n"));
  const v1::Iteration whole = Parse<v1::Iteration>(Run({"explain", "1", "1", "--json"}).out);
  ASSERT_GT(whole.passed_over_size(), 0);
  const v1::Change& other = whole.passed_over(0).change();
  const ProcessResult why_not =
      Run({"explain", "1", "1", "--why-not", absl::StrCat(other.variable(), "=", other.to())});
  EXPECT_EQ(why_not.exit_code, 0) << why_not.err;
  EXPECT_THAT(why_not.out, HasSubstr("It was not chosen: "));
}

TEST_F(RunTest, ReadsProfilesOfAFolderAndSaysWhatIsWrongWithThem) {
  const std::filesystem::path profiles = home_.path() / "profiles";
  std::filesystem::create_directories(profiles);
  std::ofstream(profiles / "decision_tree.toml")
      << "[[rule]]\nname = \"odd\"\nphase = \"memory\"\nwhen = [\"no_such_metric < 1\"]\nfinding = \"odd\"\n"
         "severity = \"1\"\nadvice = \"none\"\nsource = \"a test\"\n";
  const ProcessResult run = Run({"run", Attention().string(), "--device", "replay", "--profiles", profiles.string()});
  EXPECT_EQ(run.exit_code, 1) << run.out;
  EXPECT_THAT(run.err, HasSubstr("decision_tree.toml"));
  EXPECT_THAT(run.err, HasSubstr("no_such_metric"));

  std::filesystem::copy_file(Attention().parent_path().parent_path() / "profiles/decision_tree.toml",
                             profiles / "decision_tree.toml", std::filesystem::copy_options::overwrite_existing);
  const std::vector<std::string> good = {"run", Attention().string(), "--device",       "replay", "--iterations",
                                         "2",   "--profiles",         profiles.string()};
  const ProcessResult mended = Run(good);
  EXPECT_EQ(mended.exit_code, 0) << mended.err;
  std::unique_ptr<Running> daemon = StartOrchestrator();
  const ProcessResult others = Run(good);
  EXPECT_EQ(others.exit_code, 1) << "that one reads its own";
  EXPECT_THAT(others.err, HasSubstr("is served by the one at"));
}

TEST_F(RunTest, WaitsForWhatIsProposedAndGoesOnFromThere) {
  std::unique_ptr<Running> daemon = StartOrchestrator();
  std::unique_ptr<Running> worker =
      Start("pawl-worker", {"--orchestrator", socket_, "--device", "replay", "--name", "replay-0"});
  ASSERT_EQ(Run({"submit", Attention().string(), "--chooser", "outside", "--wait-for-proposal", "300"}).exit_code, 0);
  const auto waits_after = [&](int tried) {
    v1::Situation situation;
    for (int i = 0; i < 600; ++i, usleep(50'000)) {
      const ProcessResult asked = Run({"situation", "1", "--json"});
      if (asked.exit_code == 0) situation = Parse<v1::Situation>(asked.out);
      if (situation.waits() && situation.tried_size() >= tried) break;
    }
    return situation;
  };
  const v1::Situation first = waits_after(1);
  ASSERT_TRUE(first.waits());
  EXPECT_EQ(first.best().number(), 0);
  EXPECT_THAT(first.source(), HasSubstr("attention"));
  ASSERT_GT(first.untried_size(), 0);
  EXPECT_THAT(Run({"show", "1"}).out, HasSubstr("waits      for a proposal until "));
  const v1::Change& change = first.untried(0).change();
  const std::string proposal = absl::StrCat(change.variable(), "=", change.to());
  EXPECT_EQ(Run({"propose", "1", "NO_SUCH=1"}).exit_code, 2);
  ASSERT_EQ(Run({"propose", "1", proposal, "--author", "ada", "--why", "it ranks first"}).exit_code, 0);
  const v1::Situation second = waits_after(2);
  ASSERT_TRUE(second.waits());
  ASSERT_EQ(second.tried_size(), 2);
  EXPECT_EQ(second.tried(1).author(), "ada");
  EXPECT_EQ(second.tried(1).change().variable(), change.variable());
  EXPECT_THAT(Run({"explain", "1", "1"}).out, HasSubstr("  chosen by  ada: it ranks first\n"));

  const std::string patch = (home_.path() / "patch").string();
  std::ofstream(patch) << "--- a/other.cu\n+++ b/other.cu\n@@ -1 +1 @@\n-no such line\n+other\n";
  EXPECT_EQ(Run({"propose", "1", "--patch", patch, "--name", "odd"}).exit_code, 1) << "it does not fit";
  const std::string line = second.source().substr(0, second.source().find('\n'));
  std::ofstream(patch) << "--- a/" << second.source_path() << "\n+++ b/" << second.source_path()
                       << "\n@@ -1 +1,2 @@\n+#define EDITED 1\n " << line << "\n";
  const ProcessResult edit = Run({"propose", "1", "--patch", patch, "--name", "define", "--author", "ada"});
  EXPECT_EQ(edit.exit_code, 0) << edit.err;
  const v1::Situation third = waits_after(3);
  ASSERT_EQ(third.tried_size(), 3);
  EXPECT_EQ(third.tried(2).change().source().name(), "define");
  EXPECT_EQ(third.tried(2).verdict(), v1::REJECTED) << "no recording has it";
  EXPECT_EQ(Run({"cancel", "1"}).exit_code, 0);
}

TEST_F(RunTest, HandsOnWhatCampaignsTaught) {
  ASSERT_EQ(Run({"run", Attention().string(), "--device", "replay", "--iterations", "12"}).exit_code, 0);
  const std::string file = (home_.path() / "patterns.json").string();
  ASSERT_EQ(Run({"patterns", "--by-bundle", "--export", file, "--source", "a test"}).exit_code, 0);
  const v1::PatternFile exported = Parse<v1::PatternFile>(Slurp(file));
  bool own = false;
  for (const v1::Pattern& pattern : exported.patterns()) own = own || pattern.bundle() == "attention";
  EXPECT_TRUE(own) << Slurp(file);
  const std::string other = (home_.path() / "other.db").string();
  const ProcessResult imported = Run({"patterns", "--import", file, "--database", other});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(Run({"patterns", "--by-bundle", "--database", other}).out, HasSubstr("attention"));
  // What was handed out is remembered when the own patterns have changed since.
  ASSERT_EQ(Run({"run", Attention().string(), "--device", "replay", "--iterations", "5"}).exit_code, 0);
  const std::string before = Run({"patterns"}).out;
  EXPECT_THAT(Run({"patterns", "--import", file}).out, HasSubstr("come from this database and are in use already"));
  EXPECT_EQ(Run({"patterns"}).out, before);
}

TEST_F(RunTest, EndsWhenItsCampaignPausesItself) {
  const ProcessResult run = Run({"run", Attention().string(), "--device", "replay", "--chooser", "outside",
                                 "--wait-for-proposal", "1", "--no-proposal", "pause"});
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_THAT(run.err, HasSubstr("campaigns/1 paused itself: "));
  EXPECT_THAT(run.err, HasSubstr("pawl resume 1"));
  ReportPromise(22, absl::StrCat("`pawl run` of a campaign that paused itself ended with exit code ", run.exit_code));
}

TEST_F(RunTest, SteersCampaignsOfDaemons) {
  EXPECT_THAT(Run({"submit", Attention().string()}).err, HasSubstr("no orchestrator serves"));
  std::unique_ptr<Running> daemon = StartOrchestrator();
  const ProcessResult submit = Run({"submit", Attention().string(), "--iterations", "3"});
  EXPECT_EQ(submit.out, "campaigns/1\n") << submit.err;
  EXPECT_THAT(Run({"pause", "1"}).out, HasSubstr("campaigns/1 is paused"));
  EXPECT_THAT(Run({"resume", "1"}).out, HasSubstr("campaigns/1 is waiting"));
  EXPECT_EQ(Run({"propose", "1", "TILE_M=16"}).exit_code, 1) << "nothing to start from yet";
  EXPECT_THAT(Run({"workers"}).err, HasSubstr("No workers"));

  std::unique_ptr<Running> worker =
      Start("pawl-worker", {"--orchestrator", socket_, "--device", "replay", "--name", "replay-0"});
  EXPECT_EQ(Run({"watch", "1"}).exit_code, 0);
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("replay-0"));
  const ProcessResult second = Run({"submit", Attention().string(), "--iterations", "3", "--wait"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("campaigns/2 finished"));
  EXPECT_EQ(Run({"verify", "2", "0"}).exit_code, 0) << "by the worker that is there";
  EXPECT_EQ(Run({"cancel", "2"}).exit_code, 1) << "it has ended";
  EXPECT_EQ(Run({"submit", Attention().string(), "--gpu", "L4"}).out, "campaigns/3\n");
  EXPECT_THAT(Run({"cancel", "3", "--reason", "no L4"}).out, HasSubstr("campaigns/3 is cancelled: no L4"));
}

}  // namespace
}  // namespace pawl
