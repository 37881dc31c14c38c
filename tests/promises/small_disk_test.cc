// Promise 11, with the real program on a file system that really is full.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/hash/hash.h"
#include "db/sqlite.h"
#include "db/store.h"
#include "grpcpp/grpcpp.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Gives this process a view of the file system of its own, where it may mount. Before any thread is there.
bool MayMount() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  Write("/proc/self/setgroups", "deny");
  Write("/proc/self/uid_map", absl::StrCat("0 ", user, " 1"));
  Write("/proc/self/gid_map", absl::StrCat("0 ", group, " 1"));
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// All of the disk but so many bytes.
void Fill(const std::string& disk, const std::string& ballast, uintmax_t left) {
  const uintmax_t available = std::filesystem::space(disk).available;
  std::ofstream(ballast, std::ios::binary) << std::string(available > left ? available - left : 0, 'x');
}

grpc::Status Put(Client& client, const std::string& content) {
  v1::PutBlobRequest put;
  put.set_kind(v1::Blob::LOG);
  put.set_content(content);
  put.set_hash(Sha256(content));
  v1::PutBlobResponse reply;
  return Client::Call(client.workers(), &Client::Workers::PutBlob, put, &reply);
}

TEST(SmallDiskTest, IsNotServedFromWhileItIsFull) {
  if (!MayMount()) GTEST_SKIP() << "this machine allows no file system of one's own (user namespaces)";
  const TemporaryFolder folder("pawl-small-");
  const std::string disk = (folder.path() / "disk").string();
  std::filesystem::create_directory(disk);
  const int times = SoakCount(2, 20);
  ASSERT_EQ(mount("none", disk.c_str(), "tmpfs", 0, "size=32m"), 0);
  const std::string database = disk + "/pawl.db", ballast = disk + "/ballast";
  const std::string address = "unix:" + (folder.path() / "socket").string();
  absl::Duration slowest;
  int stored = 0, completed = 0;
  {
    Daemon orchestrator("pawl-orchestrator", {"--listen", address, "--database", database, "--reports", "none"});
    ASSERT_TRUE(orchestrator.Says("listening on")) << orchestrator.Output();
    Client client(address);
    ASSERT_TRUE(client.Register("workers/a").ok());
    for (int i = 0; i < times; ++i) {
      const std::string campaign = client.Submit(TinyBundle());
      v1::LeaseTrialResponse leased;
      ASSERT_TRUE(client.Lease("workers/a", 0, &leased).ok());
      ASSERT_TRUE(leased.has_trial());
      Fill(disk, ballast, 200'000);
      grpc::Status status;
      for (int blob = 0; status.ok() && blob < 1000; ++blob) {
        status = Put(client, absl::StrCat(i, " ", blob, std::string(50'000, 'x')));
        stored += status.ok();
      }
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      EXPECT_NE(status.error_message().find("no space is left"), std::string::npos) << status.error_message();
      EXPECT_EQ(client.Complete("workers/a", leased).error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_EQ(client.Get(campaign).name(), campaign) << "what is there can be read";

      std::filesystem::remove(ballast);
      const absl::Time begin = absl::Now();
      EXPECT_TRUE(Client::Until(std::chrono::seconds(10), [&] {
        return client.Renew("workers/a", leased.lease()).ok();
      })) << orchestrator.Output();
      slowest = std::max(slowest, absl::Now() - begin);
      EXPECT_TRUE(client.Complete("workers/a", leased).ok()) << "its lease was adopted";
      ++completed;
    }
  }
  const auto shell = SqliteConnection::Open(database, SqliteConnection::Mode::kWrite, 1000).value();
  EXPECT_EQ(shell->QueryInt("SELECT count(*) FROM blobs WHERE length(content) > 50000").value(), stored);
  Statement check = shell->Use("PRAGMA integrity_check");
  ASSERT_TRUE(check.Step().value());
  EXPECT_EQ(check.Bytes(0), "ok");
  ReportPromise(11, absl::StrFormat("ENOSPC on a tmpfs of 32 MB %d times: UNAVAILABLE, reading went on, served again "
                                    "within %.1f s; %d blobs and %d results all there, database sound",
                                    times, absl::ToDoubleSeconds(slowest), stored, completed));
}

}  // namespace
}  // namespace pawl
