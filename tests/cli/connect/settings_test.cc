#include "cli/connect/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() { environment_["HOME"] = folder_.path().string(); }

  void WriteConfig(const std::string& text) { Write(folder_.path() / ".config/pawl/pawl.toml", text); }
  static void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  absl::StatusOr<Settings> Read(const ConnectionFlags& flags = {}) const {
    return ReadSettings(flags, [this](const char* name) -> std::optional<std::string> {
      const auto at = environment_.find(name);
      return at == environment_.end() ? std::nullopt : std::optional(at->second);
    });
  }

  const TemporaryFolder folder_{"pawl-settings-"};
  std::map<std::string, std::string> environment_;
};

TEST_F(SettingsTest, HasDefaultsInTheUsersHome) {
  EXPECT_EQ(Read()->orchestrator, "");
  EXPECT_EQ(Read()->database, folder_.path() / ".local/share/pawl/pawl.db");
  environment_["XDG_DATA_HOME"] = "/data";
  EXPECT_EQ(Read()->database, "/data/pawl/pawl.db");
  environment_["XDG_DATA_HOME"] = "relative";
  EXPECT_EQ(Read()->database, folder_.path() / ".local/share/pawl/pawl.db");
}

TEST_F(SettingsTest, LetsFlagsWinOverTheEnvironmentAndThatOverTheFile) {
  WriteConfig("orchestrator = \"file:1\"\n");
  EXPECT_EQ(Read()->orchestrator, "file:1");
  environment_["PAWL_ORCHESTRATOR"] = "environment:2";
  EXPECT_EQ(Read()->orchestrator, "environment:2");
  EXPECT_EQ(Read({.orchestrator = "flag:3"})->orchestrator, "flag:3");
}

TEST_F(SettingsTest, LetsFlagsWinOverTheEnvironmentAndThatOverTheFileForTheDatabase) {
  WriteConfig("database = \"/file.db\"\n");
  EXPECT_EQ(Read()->database, "/file.db");
  environment_["PAWL_DATABASE"] = "/environment.db";
  EXPECT_EQ(Read()->database, "/environment.db");
  EXPECT_EQ(Read({.database = "/flag.db"})->database, "/flag.db");
}

TEST_F(SettingsTest, LetsADatabaseWinOverAnOrchestratorOfALowerLevel) {
  WriteConfig("orchestrator = \"file:1\"\n");
  environment_["PAWL_ORCHESTRATOR"] = "environment:2";
  EXPECT_EQ(Read({.database = "/flag.db"})->orchestrator, "");
  environment_.erase("PAWL_ORCHESTRATOR");
  environment_["PAWL_DATABASE"] = "/environment.db";
  EXPECT_EQ(Read()->orchestrator, "");
  environment_["PAWL_ORCHESTRATOR"] = "environment:2";
  EXPECT_EQ(Read()->orchestrator, "environment:2");
}

TEST_F(SettingsTest, FindsTheFileByFlagThenEnvironmentThenXdg) {
  WriteConfig("orchestrator = \"home:1\"\n");
  Write(folder_.path() / "xdg/pawl/pawl.toml", "orchestrator = \"xdg:2\"\n");
  Write(folder_.path() / "named.toml", "orchestrator = \"named:3\"\n");
  Write(folder_.path() / "flag.toml", "orchestrator = \"flag:4\"\n");
  EXPECT_EQ(Read()->orchestrator, "home:1");
  environment_["XDG_CONFIG_HOME"] = (folder_.path() / "xdg").string();
  EXPECT_EQ(Read()->orchestrator, "xdg:2");
  environment_["PAWL_CONFIG"] = (folder_.path() / "named.toml").string();
  EXPECT_EQ(Read()->orchestrator, "named:3");
  EXPECT_EQ(Read({.config = (folder_.path() / "flag.toml").string()})->orchestrator, "flag:4");
}

TEST_F(SettingsTest, ReadsTheFilesPathsFromWhereItLies) {
  WriteConfig("database = \"mine.db\"\n");
  EXPECT_EQ(Read()->database, folder_.path() / ".config/pawl/mine.db");
  WriteConfig("database = \"~/mine.db\"\n");
  EXPECT_EQ(Read()->database, folder_.path() / "mine.db");
}

TEST_F(SettingsTest, FindsEachFileOfTheCredentialsByItself) {
  WriteConfig("tls-ca = \"ca.crt\"\ntls-cert = \"~/mine.crt\"\ntoken-file = \"/file/token\"\n");
  environment_["PAWL_TLS_CERT"] = "/environment/mine.crt";
  environment_["PAWL_TLS_KEY"] = "/environment/mine.key";
  ConnectionFlags flags;
  flags.credentials.tls.key = "/flag/mine.key";
  const Credentials credentials = Read(flags)->credentials;
  EXPECT_EQ(credentials.tls.key, "/flag/mine.key");
  EXPECT_EQ(credentials.tls.cert, "/environment/mine.crt");
  EXPECT_EQ(credentials.tls.ca, folder_.path() / ".config/pawl/ca.crt");
  EXPECT_EQ(credentials.token_file, "/file/token");
  EXPECT_THAT(FlagsOf(credentials),
              testing::ElementsAre("--tls-cert", "/environment/mine.crt", "--tls-key", "/flag/mine.key", "--tls-ca",
                                   credentials.tls.ca, "--token-file", "/file/token"));
  EXPECT_EQ(FlagsText(flags), " --tls-key /flag/mine.key");
}

TEST_F(SettingsTest, SaysWhatIsWrongWithTheFile) {
  WriteConfig("orchestrater = \"a:1\"\n");
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("pawl.toml:1: "));
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("orchestrater"));
  WriteConfig("orchestrator = 7\n");
  EXPECT_FALSE(Read().ok());
  EXPECT_THAT(std::string(Read({.config = "/nonexistent.toml"}).status().message()), HasSubstr("/nonexistent.toml"));
  EXPECT_THAT(std::string(Read({.config = "/dev/zero"}).status().message()),
              HasSubstr("/dev/zero is longer than 1 MB"));
  EXPECT_TRUE(Read({.config = "/dev/null"}).ok()) << "no settings";
}

TEST_F(SettingsTest, AsksForADatabaseWhereThereIsNoHome) {
  environment_.clear();
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("--database"));
  EXPECT_EQ(Read({.database = "/x.db"})->database, "/x.db");
}

}  // namespace
}  // namespace pawl
