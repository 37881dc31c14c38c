#include "orchestrator/rpc/server.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/running_service.h"

namespace pawl {
namespace {

// Sends bytes to a method that no stub was generated for, and reads the first answer.
std::pair<grpc::Status, std::string> Send(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                                          const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  const auto wait = [&] {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  wait();
  const grpc::Slice slice(bytes);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  wait();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  std::string text;
  if (wait()) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(answer.Dump(&slices).ok());
    for (const grpc::Slice& part : slices) text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return {status, text};
}

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse with field 1, an enum.
const std::string kServing = "\x08\x01", kNotServing = "\x08\x02";

TEST(ServerTest, SaysThatItServesAndWhenItDoesNot) {
  FaultyDisk disk;
  RunningService service;
  EXPECT_EQ(Send(service.channel(), kHealth, "").second, kServing);
  disk.FailWrites(SQLITE_FULL);
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  service.Refuse(service.campaigns(), &v1::CampaignService::Stub::SubmitCampaign, submit, grpc::StatusCode::UNAVAILABLE,
                 "no space");
  const auto becomes = [&](const std::string& expected) {
    for (int i = 0; i < 500 && Send(service.channel(), kHealth, "").second != expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Send(service.channel(), kHealth, "").second == expected;
  };
  EXPECT_TRUE(becomes(kNotServing));
  disk.Heal();
  EXPECT_TRUE(becomes(kServing));
}

TEST(ServerTest, AnswersToolsOnlyWhenToldTo) {
  constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  const std::string list_services("\x3a\x00", 2);  // field 7, a string
  const RunningService service;
  EXPECT_EQ(Send(service.channel(), kMethod, list_services).first.error_code(), grpc::StatusCode::UNIMPLEMENTED);

  const TemporaryFolder folder("pawl-server-");
  const auto store = Store::Open({.file = folder.path() / "pawl.db"}).value();
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.reflection = true;
  const auto server = Server::Start(*store, options).value();
  const auto answer =
      Send(grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()), kMethod, list_services);
  EXPECT_NE(answer.second.find("pawl.v1.CampaignService"), std::string::npos) << answer.first.error_message();
  EXPECT_NE(answer.second.find("pawl.v1.WorkerService"), std::string::npos);
}

// What is small on the wire may be large.
TEST(ServerTest, UnpacksNothing) {
  RunningService service;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::ListCampaignsRequest request;
  request.set_page_token(std::string(1 << 20, 'x'));
  v1::ListCampaignsResponse reply;
  const grpc::Status status = service.campaigns().ListCampaigns(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

class ListenTest : public ::testing::Test {
 protected:
  ListenTest() : folder_("pawl-server-"), store_(Store::Open({.file = folder_.path() / "pawl.db"}).value()) {}
  absl::StatusOr<std::unique_ptr<Server>> Start(const std::string& address, Store& store) {
    ServerOptions options;
    options.listen = address;
    return Server::Start(store, options);
  }
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(ListenTest, ListensOnThisMachineOnly) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "10.1.2.3:7465", "example.com:7465", "127.0.0.1.example.com:7465",
                              "127.evil:7465", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000",
                              "127.0.0.1:-1", ":7465", "7465", "", "unix:", "dns:///localhost:80"}) {
    const absl::Status status = Start(address, *store_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address << ": " << status;
    EXPECT_NE(status.message(), "");
  }
  EXPECT_NE(std::string(Start("0.0.0.0:0", *store_).status().message()).find("ssh -L"), std::string::npos);
}

TEST_F(ListenTest, TakesAnyFreePort) {
  const auto server = Start("127.0.0.1:0", *store_).value();
  EXPECT_NE(server->address(), "127.0.0.1:0");
  const auto stub =
      v1::CampaignService::NewStub(grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ListCampaignsResponse reply;
  EXPECT_TRUE(stub->ListCampaigns(&context, {}, &reply).ok());
}

TEST_F(ListenTest, ListensOnEveryAddressOfAName) {
  const auto server = Start("localhost:0", *store_).value();
  const std::string port = server->address().substr(server->address().rfind(':'));
  const int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_six = six >= 0 && bind(six, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  close(six);
  addrinfo* found = nullptr;
  addrinfo hints = {};
  hints.ai_family = AF_INET6;
  const bool named = getaddrinfo("localhost", nullptr, &hints, &found) == 0;
  if (named) freeaddrinfo(found);
  for (const std::string& host : {std::string("127.0.0.1"), std::string("[::1]")}) {
    if (host == "[::1]" && !(has_six && named)) continue;
    const auto stub =
        v1::CampaignService::NewStub(grpc::CreateChannel(host + port, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::ListCampaignsResponse reply;
    EXPECT_TRUE(stub->ListCampaigns(&context, {}, &reply).ok()) << host;
  }
}

TEST_F(ListenTest, SharesNoAddressWithAnother) {
  const auto other = Store::Open({.file = folder_.path() / "other.db"}).value();
  const std::string socket = "unix:" + (folder_.path() / "socket").string();
  const auto on_port = Start("127.0.0.1:0", *store_).value();
  EXPECT_EQ(Start(on_port->address(), *other).status().code(), absl::StatusCode::kUnavailable);
  const auto on_socket = Start(socket, *store_).value();
  const absl::Status status = Start(socket, *other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  const auto stub = v1::CampaignService::NewStub(grpc::CreateChannel(socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ListCampaignsResponse reply;
  EXPECT_TRUE(stub->ListCampaigns(&context, {}, &reply).ok()) << "the first one still listens";
}

TEST_F(ListenTest, TakesASocketThatAKilledOneLeftBehind) {
  const std::string path = (folder_.path() / "socket").string();
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(left);
  EXPECT_TRUE(Start("unix:" + path, *store_).ok());
}

TEST_F(ListenTest, SaysSoWhenThePathCannotBeUsed) {
  EXPECT_EQ(Start("unix:/no/such/folder/socket", *store_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Start("unix:" + std::string(200, 'x'), *store_).ok());
}

}  // namespace
}  // namespace pawl
