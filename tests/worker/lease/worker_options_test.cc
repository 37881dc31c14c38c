#include "worker/lease/worker_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorkerOptionsTest : public testing::Test {
 protected:
  ~WorkerOptionsTest() override {
    for (const char* name : {"PAWL_ORCHESTRATOR", "PAWL_DEVICE", "PAWL_NAME", "PAWL_ALLOW_UNSANDBOXED", "PAWL_AHEAD"}) {
      unsetenv(name);
    }
  }
  std::optional<WorkerOptions> Read(std::vector<std::string> words) {
    words.insert(words.begin(), "pawl-worker");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    std::optional<WorkerOptions> options =
        ReadWorkerOptions(static_cast<int>(argv.size()), argv.data(), "1.2.3", &exit_code_);
    said_ = testing::internal::GetCapturedStderr();
    printed_ = testing::internal::GetCapturedStdout();
    return options;
  }
  std::string File(const std::string& text) {
    const std::filesystem::path file = folder_.path() / "worker.toml";
    std::ofstream(file) << text;
    return file.string();
  }

  const TemporaryFolder folder_{"pawl-options-test-"};
  int exit_code_ = 0;
  std::string said_, printed_;
};

TEST_F(WorkerOptionsTest, ReadsFlags) {
  const std::optional<WorkerOptions> options =
      Read({"--orchestrator", "unix:/tmp/pawl", "--device", "cuda:3", "--name", "workers/h200-3", "--ahead", "4",
            "--replay-speed", "2.5", "--recordings", "a", "b", "--allow-unsandboxed", "--log-level", "debug"});
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->orchestrator, "unix:/tmp/pawl");
  EXPECT_EQ(options->device, DeviceChoice::kCuda);
  EXPECT_EQ(options->cuda, 3);
  EXPECT_EQ(options->name, "h200-3");
  EXPECT_EQ(options->ahead, 4);
  EXPECT_EQ(options->replay_speed, 2.5);
  EXPECT_THAT(options->recordings, ElementsAre("a", "b"));
  EXPECT_TRUE(options->allow_unsandboxed);
  EXPECT_EQ(options->log_level, "debug");
}

TEST_F(WorkerOptionsTest, ReadsWhenToEnd) {
  const std::optional<WorkerOptions> options =
      Read({"--orchestrator", "localhost:1", "--exit-when-idle", "2m", "--max-trials", "7", "--until",
            "2999-01-02T03:04:05Z", "--grace", "90"});
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->limits.idle->count(), 120);
  EXPECT_EQ(options->limits.trials, 7);
  EXPECT_EQ(absl::FormatTime(*options->limits.until, absl::UTCTimeZone()), "2999-01-02T03:04:05+00:00");
  EXPECT_EQ(options->grace.count(), 90);
  EXPECT_EQ(absl::ToUnixSeconds(*Read({"--orchestrator", "localhost:1", "--until", "32472144000"})->limits.until),
            32472144000);
  const std::optional<WorkerOptions> without = Read({"--orchestrator", "localhost:1"});
  EXPECT_FALSE(without->limits.any());
  EXPECT_EQ(without->grace.count(), 30);
}

TEST_F(WorkerOptionsTest, RefusesTimesThatAreNone) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"--exit-when-idle", "soon"}, {"--exit-when-idle", "-5s"}, {"--grace", "0"},
      {"--max-trials", "0"},        {"--until", "tomorrow"},     {"--until", "2020-01-01T00:00:00Z"}};
  for (const auto& [flag, value] : mistakes) {
    EXPECT_FALSE(Read({"--orchestrator", "localhost:1", flag, value}).has_value()) << flag << " " << value;
    EXPECT_EQ(exit_code_, 2);
    EXPECT_THAT(said_, HasSubstr(flag)) << said_;
  }
}

TEST_F(WorkerOptionsTest, LeavesToTheDeviceWhatIsNotSaid) {
  const std::optional<WorkerOptions> options = Read({"--orchestrator", "localhost:1"});
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->device, DeviceChoice::kAuto);
  EXPECT_FALSE(options->ahead.has_value());
  EXPECT_EQ(options->name, "");
  EXPECT_EQ(options->log_level, "info");
  EXPECT_FALSE(options->allow_unsandboxed);
}

TEST_F(WorkerOptionsTest, LetsFlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const std::string file =
      File("orchestrator = \"of-the-file:1\"\ndevice = \"replay\"\nname = \"of-the-file\"\nahead = 3\n");
  setenv("PAWL_ORCHESTRATOR", "of-the-environment:1", 1);
  setenv("PAWL_NAME", "of-the-environment", 1);
  setenv("PAWL_ALLOW_UNSANDBOXED", "true", 1);
  const std::optional<WorkerOptions> options = Read({"--config", file, "--orchestrator", "of-a-flag:1"});
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->orchestrator, "of-a-flag:1");
  EXPECT_EQ(options->name, "of-the-environment");
  EXPECT_EQ(options->device, DeviceChoice::kReplay);
  EXPECT_EQ(options->ahead, 3);
  EXPECT_TRUE(options->allow_unsandboxed);
}

TEST_F(WorkerOptionsTest, ReadsWhatItShowsOfItself) {
  const std::string file = File("orchestrator = \"gpu-head:1\"\ntls-ca = \"/file/ca\"\ntls-cert = \"/file/cert\"\n");
  setenv("PAWL_TLS_CERT", "/environment/cert", 1);
  const std::optional<WorkerOptions> options =
      Read({"--config", file, "--tls-key", "/flag/key", "--token-file", "/flag/token"});
  unsetenv("PAWL_TLS_CERT");
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->credentials.tls.ca, "/file/ca");
  EXPECT_EQ(options->credentials.tls.cert, "/environment/cert");
  EXPECT_EQ(options->credentials.tls.key, "/flag/key");
  EXPECT_EQ(options->credentials.token_file, "/flag/token");
}

TEST_F(WorkerOptionsTest, TakesAnEmptyVariableForNotSet) {
  setenv("PAWL_NAME", "", 1);
  const std::optional<WorkerOptions> options =
      Read({"--config", File("orchestrator = \"of-the-file:1\"\nname = \"of-the-file\"\n")});
  ASSERT_TRUE(options.has_value()) << said_;
  EXPECT_EQ(options->orchestrator, "of-the-file:1");
  EXPECT_EQ(options->name, "of-the-file");
}

TEST_F(WorkerOptionsTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::string> at = {"--orchestrator", "localhost:1"};
  const auto refuses = [&](std::vector<std::string> words, const std::string& because) {
    words.insert(words.begin(), at.begin(), at.end());
    EXPECT_FALSE(Read(words).has_value()) << because;
    EXPECT_EQ(exit_code_, 2) << because;
    EXPECT_THAT(said_, HasSubstr(because));
  };
  refuses({"--device", "gpu"}, "expected auto, all, cuda:N, replay");
  refuses({"--device", "cuda:"}, "expected auto, all, cuda:N, replay");
  refuses({"--device", "cuda:-1"}, "expected auto, all, cuda:N, replay");
  refuses({"--device", "cuda:1x"}, "expected auto, all, cuda:N, replay");
  refuses({"--name", "a b"}, "letters, digits");
  refuses({"--ahead", "-1"}, "--ahead");
  refuses({"--replay-speed", "-1"}, "--replay-speed");
  refuses({"--replay-speed", "nan"}, "nan is no number");
  refuses({"--log-level", "loud"}, "--log-level");
  refuses({"--no-such-flag"}, "--no-such-flag");
  refuses({"--config", "/no/such/file"}, "/no/such/file");
  refuses({"--config", "/dev/zero"}, "/dev/zero is longer than 1 MB");
  refuses({"--config", File("name = \"a\"\ndevise = \"replay\"\n")},
          "worker.toml:2: unknown key \"devise\"; there are orchestrator, device, recordings");
  refuses({"--config", File("name = \"a\"\n\nahead = = 3\n")}, "worker.toml:3: ");
  refuses({"--config", File("device = replay\n")}, "expected lines like key = \"text\"");
  refuses({"--config", File("[device]\nkind = \"replay\"\n")},
          "worker.toml:1: \"device\" is a table; expected a value");
  refuses({"--config", File("config = \"another\"\n")}, "unknown key \"config\"");
}

TEST_F(WorkerOptionsTest, NeedsAnOrchestrator) {
  EXPECT_FALSE(Read({"--device", "replay"}).has_value());
  EXPECT_EQ(exit_code_, 2);
  EXPECT_THAT(said_, HasSubstr("PAWL_ORCHESTRATOR"));
}

TEST_F(WorkerOptionsTest, HelpsAndSaysItsVersion) {
  EXPECT_FALSE(Read({"--help"}).has_value());
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(printed_, HasSubstr("Example: pawl-worker --orchestrator"));
  EXPECT_FALSE(Read({"--version"}).has_value());
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(printed_, HasSubstr("1.2.3"));
}

}  // namespace
}  // namespace pawl
