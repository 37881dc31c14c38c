// Promise 14: a database whose files are missing, moved, replaced or cut is neither started on nor written to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DatabaseFilesTest : public testing::Test {
 protected:
  std::unique_ptr<Daemon> Start() {
    return std::make_unique<Daemon>("pawl-orchestrator", std::vector<std::string>{"--listen", address_, "--database",
                                                                                  database_, "--log-level", "error"});
  }

  TemporaryFolder folder_{"pawl-files-"};
  const std::string database_ = (folder_.path() / "pawl.db").string();
  const std::string aside_ = (folder_.path() / "aside.db").string();
  const std::string address_ = "unix:" + (folder_.path() / "socket").string();
};

TEST_F(DatabaseFilesTest, EndsAtOnceWhenTheyAreHarmedAndLosesNothingThatIsStillThere) {
  const struct {
    const char* said;
    std::function<void()> harm, mend;
  } harms[] = {
      {"was removed or moved", [&] { fs::rename(database_, aside_); }, [&] { fs::rename(aside_, database_); }},
      {"was replaced",
       [&] {
         fs::rename(database_, aside_);
         fs::copy_file(aside_, database_);
       },
       [&] { fs::rename(aside_, database_); }},
      {"was cut",
       [&] {
         fs::copy_file(database_, aside_);
         fs::resize_file(database_, 0);
       },
       [&] { fs::copy_file(aside_, database_, fs::copy_options::overwrite_existing); }},
  };
  std::set<std::string> acknowledged;
  int harmed = 0, ended = 0;
  size_t found = 0;
  for (int turn = 0; turn < SoakCount(1, 10) * static_cast<int>(std::size(harms)); ++turn) {
    const auto& [said, harm, mend] = harms[turn % std::size(harms)];
    SCOPED_TRACE(said);
    std::unique_ptr<Daemon> orchestrator = Start();
    Client client(address_);
    for (int i = 0; i < 5; ++i) acknowledged.insert(client.Submit(TinyBundle()));
    harm();
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    v1::Campaign campaign;
    EXPECT_FALSE(Client::Call(client.campaigns(), &Client::Campaigns::SubmitCampaign, request, &campaign).ok())
        << "also before anything has looked at the files";
    ++harmed;
    const int code = orchestrator->WaitForEnd(std::chrono::seconds(5));
    EXPECT_EQ(code, 1) << orchestrator->Output();
    ended += code == 1;
    EXPECT_THAT(orchestrator->Output(), HasSubstr(said));
    orchestrator = Start();
    EXPECT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(5)), 1) << orchestrator->Output();
    EXPECT_THAT(orchestrator->Output(), HasSubstr("back in its place"));
    mend();
    fs::remove(aside_);
    orchestrator = Start();
    ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
    Client again(address_);
    found = 0;
    for (const std::string& name : acknowledged) found += again.Get(name).name() == name;
    EXPECT_EQ(found, acknowledged.size());
    orchestrator->Signal(SIGTERM);
    EXPECT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(10)), 0) << orchestrator->Output();
  }
  ReportPromise(
      14, absl::StrCat(harmed, " times the file of a running orchestrator was moved, replaced or cut: it ended ", ended,
                       " times, and ", found, " of ", acknowledged.size(),
                       " acknowledged campaigns were there after the repair"));
}

TEST_F(DatabaseFilesTest, IsNotStartedOnALogWithoutItsDatabase) {
  {
    std::unique_ptr<Daemon> orchestrator = Start();
    Client client(address_);
    client.Submit(TinyBundle());
    orchestrator->Signal(SIGKILL);
  }
  const auto bytes = fs::file_size(database_ + "-wal");
  ASSERT_GT(bytes, 0u);
  fs::rename(database_, aside_);
  EXPECT_EQ(Start()->WaitForEnd(std::chrono::seconds(5)), 1);
  EXPECT_FALSE(fs::exists(database_));
  EXPECT_EQ(fs::file_size(database_ + "-wal"), bytes) << "the log is as it was";
  fs::rename(aside_, database_);
  std::unique_ptr<Daemon> orchestrator = Start();
  EXPECT_EQ(Client(address_).Get("campaigns/1").name(), "campaigns/1");
}

// `pawl` uses the other one then.
TEST_F(DatabaseFilesTest, ExitsWithACodeOfItsOwnWhereAnotherOrchestratorHasThem) {
  const std::unique_ptr<Daemon> first = Start();
  ASSERT_TRUE(first->Says("listening on")) << first->Output();
  EXPECT_EQ(Start()->WaitForEnd(std::chrono::seconds(5)), 75);
}

TEST_F(DatabaseFilesTest, EndsWhenTheLogIsCut) {
  const std::string log = database_ + "-wal";
  for (const double left : {0., 0.5}) {
    SCOPED_TRACE(left);
    std::unique_ptr<Daemon> orchestrator = Start();
    Client client(address_);
    // So many that the log is not mostly what a checkpoint has left of earlier ones.
    std::string campaign;
    for (int i = 0; i < 8; ++i) campaign = client.Submit(TinyBundle());
    orchestrator->Signal(SIGSTOP);  // what is put back is what was cut
    fs::copy_file(log, aside_);
    fs::resize_file(log, static_cast<uintmax_t>(left * static_cast<double>(fs::file_size(log))));
    orchestrator->Signal(SIGCONT);
    EXPECT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(5)), 1) << orchestrator->Output();
    EXPECT_THAT(orchestrator->Output(), HasSubstr("-wal was cut"));
    fs::copy_file(aside_, log, fs::copy_options::overwrite_existing);
    fs::remove(aside_);
    orchestrator = Start();
    ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
    EXPECT_EQ(Client(address_).Get(campaign).name(), campaign);
    orchestrator->Signal(SIGKILL);
    orchestrator->WaitForEnd(std::chrono::seconds(5));
  }
}

// By cp, which keeps the file's inode: its name, its inode and the log beside it are those of the database before.
TEST_F(DatabaseFilesTest, IsNotStartedOnABackupBesideTheLogOfTheDatabase) {
  const std::string backup = (folder_.path() / "backup.db").string();
  std::unique_ptr<Daemon> orchestrator = Start();
  Client client(address_);
  client.Submit(TinyBundle());
  EXPECT_EQ(
      Daemon("pawl-orchestrator", {"--database", database_, "--backup", backup}).WaitForEnd(std::chrono::seconds(5)),
      0);
  for (int restores = 0; restores < 2; ++restores) {
    SCOPED_TRACE(restores);
    client.Submit(TinyBundle());
    orchestrator->Signal(SIGKILL);
    orchestrator->WaitForEnd(std::chrono::seconds(5));
    const auto bytes = fs::file_size(database_ + "-wal");
    ASSERT_GT(bytes, 0u);
    fs::copy_file(backup, database_, fs::copy_options::overwrite_existing);
    orchestrator = Start();
    ASSERT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(5)), 1) << orchestrator->Output();
    EXPECT_THAT(orchestrator->Output(), HasSubstr("was replaced"));
    EXPECT_EQ(fs::file_size(database_ + "-wal"), bytes) << "the log is as it was";
    fs::remove(database_ + "-wal");
    fs::remove(database_ + "-shm");
    orchestrator = Start();
    ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
    EXPECT_EQ(Client(address_).Get("campaigns/1").name(), "campaigns/1");
  }
}

// Without the lock file nothing but the database itself says that the log is not its own.
TEST_F(DatabaseFilesTest, IsNotStartedOnABackupBesideALogThatNobodyNoted) {
  const std::string backup = (folder_.path() / "backup.db").string();
  std::unique_ptr<Daemon> orchestrator = Start();
  Client(address_).Submit(TinyBundle());
  EXPECT_EQ(
      Daemon("pawl-orchestrator", {"--database", database_, "--backup", backup}).WaitForEnd(std::chrono::seconds(5)),
      0);
  Client(address_).Submit(TinyBundle());
  orchestrator->Signal(SIGKILL);
  orchestrator->WaitForEnd(std::chrono::seconds(5));
  const auto bytes = fs::file_size(database_ + "-wal");
  ASSERT_GT(bytes, 0u);
  fs::copy_file(backup, database_, fs::copy_options::overwrite_existing);
  fs::remove(database_ + ".lock");
  orchestrator = Start();
  ASSERT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(5)), 1) << orchestrator->Output();
  EXPECT_THAT(orchestrator->Output(), HasSubstr("aside"));
  EXPECT_EQ(fs::file_size(database_ + "-wal"), bytes) << "the log is as it was";
  fs::remove(database_ + "-wal");
  fs::remove(database_ + "-shm");
  orchestrator = Start();
  ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
  EXPECT_EQ(Client(address_).Get("campaigns/1").name(), "campaigns/1");
}

// In place: neither the inode changes nor does the file get shorter.
TEST_F(DatabaseFilesTest, EndsWhenABackupIsWrittenOverThem) {
  std::unique_ptr<Daemon> orchestrator = Start();
  Client client(address_);
  client.Submit(TinyBundle());
  EXPECT_EQ(
      Daemon("pawl-orchestrator", {"--database", database_, "--backup", aside_}).WaitForEnd(std::chrono::seconds(5)),
      0);
  client.Submit(TinyBundle());
  const auto length = fs::file_size(database_);
  std::string content(fs::file_size(aside_), 0);
  ASSERT_TRUE(
      std::ifstream(aside_, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size())));
  content.resize(std::max<size_t>(content.size(), length));
  std::fstream(database_, std::ios::binary | std::ios::in | std::ios::out)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  v1::Campaign campaign;
  EXPECT_FALSE(Client::Call(client.campaigns(), &Client::Campaigns::SubmitCampaign, request, &campaign).ok());
  EXPECT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(5)), 1) << orchestrator->Output();
  EXPECT_THAT(orchestrator->Output(), HasSubstr("was overwritten"));
}

TEST_F(DatabaseFilesTest, EndsWithAMessageWhenTheyAreHarmedWhileItDrains) {
  std::unique_ptr<Daemon> orchestrator = Start();
  Client client(address_);
  client.Submit(TinyBundle());
  ASSERT_TRUE(client.Register("workers/a").ok());
  v1::LeaseTrialResponse leased;
  ASSERT_TRUE(client.Lease("workers/a", 0, &leased).ok());
  ASSERT_TRUE(leased.has_trial());
  orchestrator->Signal(SIGTERM);
  v1::LeaseTrialResponse none;
  ASSERT_TRUE(Client::Until(std::chrono::seconds(5), [&] { return !client.Lease("workers/a", 0, &none).ok(); }));
  fs::rename(database_, aside_);
  EXPECT_EQ(orchestrator->WaitForEnd(std::chrono::seconds(10)), 1) << orchestrator->Output();
  EXPECT_THAT(orchestrator->Output(), HasSubstr("was removed or moved"));
}

TEST_F(DatabaseFilesTest, HasNoDefaultWithoutAHomeFolder) {
  int refused = 0;
  for (const char* home : {"", "relative"}) {
    Daemon orchestrator("pawl-orchestrator", {"--listen", address_}, {{"HOME", home}, {"XDG_DATA_HOME", home}});
    const int code = orchestrator.WaitForEnd(std::chrono::seconds(5));
    EXPECT_EQ(code, 2) << orchestrator.Output();
    EXPECT_THAT(orchestrator.Output(), HasSubstr("--database FILE"));
    refused += code == 2;
  }
  ReportPromise(22, absl::StrCat("without a home folder the orchestrator refused to start ", refused, " times"));
}

}  // namespace
}  // namespace pawl
