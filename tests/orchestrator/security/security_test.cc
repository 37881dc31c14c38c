// Connections that must not come about, and calls that must be refused, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/channel/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "tests/orchestrator/running_service.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Campaigns = v1::CampaignService::Stub;

constexpr char kWorkToken[] = "work-token-0123456789", kReadToken[] = "read-token-0123456789";

// Certificates of one authority, made by the script that users have.
struct Certificates {
  explicit Certificates(std::vector<std::string> options = {}) : folder("pawl-certificates-") {
    ProcessOptions script;
    script.argv = {std::string(getenv("PAWL_SOURCE_DIR")) + "/scripts/make-certificates", folder.path().string()};
    script.argv.insert(script.argv.end(), options.begin(), options.end());
    const absl::StatusOr<ProcessResult> result = RunProcess(script);
    EXPECT_TRUE(result.ok() && result->ok()) << (result.ok() ? result->err : result.status().ToString());
  }
  std::string Path(const std::string& file) const { return (folder.path() / file).string(); }
  TlsFiles Of(const std::string& name) const {
    return {.cert = Path(name + ".crt"), .key = Path(name + ".key"), .ca = Path("ca.crt")};
  }

  const TemporaryFolder folder;
};

const Certificates& Good() {
  static const Certificates* const certificates = new Certificates;
  return *certificates;
}

class SecurityTest : public ::testing::Test {
 protected:
  SecurityTest() : folder_("pawl-security-"), store_(Store::Open({.file = folder_.path() / "pawl.db"}).value()) {}

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const fs::path file = folder_.path() / name;
    std::ofstream(file) << text;
    chmod(file.c_str(), mode);
    return file.string();
  }
  std::string Tokens() { return Write("tokens", std::string("work ") + kWorkToken + "\nread " + kReadToken + "\n"); }

  absl::Status Start(const std::string& listen, const SecurityOptions& security) {
    ServerOptions options;
    options.listen = listen;
    options.security = security;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*store_, options);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  void StartWithTls(const std::string& tokens = "") {
    const absl::Status started = Start("127.0.0.1:0", {.tls = Good().Of("orchestrator"), .tokens = tokens});
    ASSERT_TRUE(started.ok()) << started;
  }

  std::shared_ptr<grpc::Channel> Connect(const Credentials& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no connection of another test's client
    return OpenChannel(server_->address(), credentials, arguments).value();
  }

  template <typename Stub, typename Request, typename Reply>
  grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                    grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                    const std::type_identity_t<Request>& request, bool deadline = true) {
    Stub stub(channel);
    grpc::ClientContext context;
    if (deadline) context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    Reply reply;
    return (stub.*rpc)(&context, request, &reply);
  }
  grpc::StatusCode Read(const Credentials& credentials) {
    return Call(Connect(credentials), &Campaigns::ListCampaigns, {}).error_code();
  }
  grpc::StatusCode Submit(const Credentials& credentials) {
    return Call(Connect(credentials), &Campaigns::SubmitCampaign, {}).error_code();
  }
  grpc::StatusCode Work(const Credentials& credentials) {
    return Call(Connect(credentials), &v1::WorkerService::Stub::LeaseTrial, {}).error_code();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Store> store_;
  std::unique_ptr<Server> server_;
};

using grpc::StatusCode;

TEST_F(SecurityTest, GivesACertificateItsRole) {
  StartWithTls();
  const Credentials reader = {.tls = Good().Of("read")}, submitter = {.tls = Good().Of("submit")},
                    worker = {.tls = Good().Of("work")};
  EXPECT_EQ(Read(reader), StatusCode::OK);
  EXPECT_EQ(Submit(reader), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Work(reader), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Read(submitter), StatusCode::OK);
  EXPECT_EQ(Submit(submitter), StatusCode::INVALID_ARGUMENT) << "an empty submission came through";
  EXPECT_EQ(Work(submitter), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Read(worker), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Submit(worker), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Work(worker), StatusCode::NOT_FOUND) << "a lease for nobody came through";
  EXPECT_EQ(Read({.tls = Good().Of("orchestrator")}), StatusCode::UNAVAILABLE) << "that one is for serving";
}

TEST_F(SecurityTest, LetsNobodyInWithoutACertificate) {
  StartWithTls();
  EXPECT_EQ(Read({.tls = {.ca = Good().Path("ca.crt")}}), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Read({}), StatusCode::UNAVAILABLE) << "does not use TLS";
}

TEST_F(SecurityTest, LetsNobodyInWithAnExpiredCertificate) {
  StartWithTls();
  const Certificates expired({"--days", "-1"});
  // The right authority, whose certificates are over.
  for (const char* file : {"ca.crt", "ca.key"}) {
    fs::copy_file(Good().Path(file), expired.Path(file), fs::copy_options::overwrite_existing);
  }
  ProcessOptions again;
  again.argv = {std::string(getenv("PAWL_SOURCE_DIR")) + "/scripts/make-certificates", expired.folder.path().string(),
                "--days", "-1"};
  ASSERT_TRUE(RunProcess(again)->ok());
  EXPECT_EQ(Read({.tls = expired.Of("read")}), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Read({.tls = Good().Of("read")}), StatusCode::OK);
  server_.reset();
  ASSERT_TRUE(Start("127.0.0.1:0", {.tls = expired.Of("orchestrator")}).ok());
  EXPECT_EQ(Read({.tls = Good().Of("read")}), StatusCode::UNAVAILABLE)
      << "a client does not trust an expired one either";
}

TEST_F(SecurityTest, LetsNobodyInWithACertificateOfAnotherAuthority) {
  StartWithTls();
  const Certificates other;
  TlsFiles files = other.Of("submit");
  files.ca = Good().Path("ca.crt");
  EXPECT_EQ(Read({.tls = files}), StatusCode::UNAVAILABLE);
  files = Good().Of("submit");
  files.ca = other.Path("ca.crt");
  EXPECT_EQ(Read({.tls = files}), StatusCode::UNAVAILABLE) << "a client does not trust this orchestrator";
}

TEST_F(SecurityTest, GivesATokenItsRole) {
  const std::string work = Write("work", std::string(kWorkToken) + "\n"), read = Write("read", kReadToken),
                    wrong = Write("wrong", "guess-0123456789abcdef");
  const auto try_all = [&](const TlsFiles& tls) {
    EXPECT_EQ(Work({tls, work}), StatusCode::NOT_FOUND);
    EXPECT_EQ(Read({tls, work}), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(Read({tls, read}), StatusCode::OK);
    EXPECT_EQ(Submit({tls, read}), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(Read({tls, wrong}), StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(Read({tls, ""}), StatusCode::UNAUTHENTICATED);
  };
  StartWithTls(Tokens());
  try_all({.ca = Good().Path("ca.crt")});
  EXPECT_EQ(Submit({.tls = Good().Of("submit")}), StatusCode::INVALID_ARGUMENT) << "a certificate goes as well";
  server_.reset();
  ASSERT_TRUE(Start("127.0.0.1:0", {.tokens = Tokens()}).ok());
  try_all({});
  server_.reset();
  ASSERT_TRUE(Start("unix:" + (folder_.path() / "socket").string(), {.tokens = Tokens()}).ok());
  try_all({});
}

TEST_F(SecurityTest, RefusesCallsWithoutADeadline) {
  ASSERT_TRUE(Start("unix:" + (folder_.path() / "socket").string(), {}).ok());
  const auto channel = Connect({});
  const grpc::Status status = Call(channel, &Campaigns::ListCampaigns, {}, /*deadline=*/false);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("ListCampaigns needs a deadline"));
  EXPECT_TRUE(Call(channel, &Campaigns::ListCampaigns, {}).ok());
  // Watching goes on for hours.
  grpc::ClientContext context;
  v1::WatchCampaignResponse response;
  v1::WatchCampaignRequest request;
  request.set_campaign("campaigns/1");
  const auto reader = Campaigns(channel).WatchCampaign(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(SecurityTest, RefusesMessagesThatAreLargerThanAnyBundle) {
  StartWithTls();
  const auto channel = Connect({.tls = Good().Of("submit")});
  v1::SubmitCampaignRequest request;
  request.mutable_bundle()->mutable_source()->set_text(std::string(kMaxRpcBytes, ' '));
  EXPECT_EQ(Call(channel, &Campaigns::SubmitCampaign, request).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  request.mutable_bundle()->mutable_source()->set_text(std::string(3 << 20, ' '));
  EXPECT_EQ(Call(channel, &Campaigns::SubmitCampaign, request).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Call(channel, &Campaigns::ListCampaigns, {}).ok());
}

TEST_F(SecurityTest, SaysWhetherItServesToWhoeverMayConnect) {
  StartWithTls(Tokens());
  grpc::GenericStub stub(Connect({.tls = {.ca = Good().Path("ca.crt")}}));
  const auto ask = [&stub](const std::string& path) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    grpc::CompletionQueue queue;
    const grpc::Slice nothing("");
    const auto call = stub.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&nothing, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    return status.error_code();
  };
  EXPECT_EQ(ask("/grpc.health.v1.Health/Check"), StatusCode::OK);
  EXPECT_EQ(ask("/pawl.v1.CampaignService/ListCampaigns"), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ask("/pawl.v1.CampaignService/NoSuchCall"), StatusCode::UNIMPLEMENTED);
}

TEST_F(SecurityTest, ListensToOtherMachinesWithTlsOnly) {
  const auto refused = [&](const std::string& listen, const SecurityOptions& security, const std::string& because) {
    const absl::Status status = Start(listen, security);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(because));
  };
  refused("0.0.0.0:0", {}, "needs TLS");
  refused("0.0.0.0:0", {.tokens = Tokens()}, "needs TLS");
  refused("127.0.0.2:0", {}, "needs TLS");
  const TlsFiles files = Good().Of("orchestrator");
  refused("0.0.0.0:0", {.tls = {.cert = files.cert, .key = files.key}}, "no client could connect");
  refused("0.0.0.0:0", {.tls = {.ca = files.ca}}, "--tls-ca needs --tls-cert");
  refused("0.0.0.0:0", {.tls = {.cert = files.cert, .ca = files.ca}}, "--tls-key");
  refused("unix:" + (folder_.path() / "socket").string(), {.tls = files}, "does not use TLS");
  EXPECT_TRUE(Start("0.0.0.0:0", {.tls = files}).ok());
  const grpc::ChannelArguments arguments;
  EXPECT_THAT(std::string(OpenChannel("gpu-head:7465", {}, arguments).status().message()), HasSubstr("--tls-ca"));
  EXPECT_THAT(std::string(OpenChannel("0.0.0.0:7465", {}, arguments).status().message()),
              HasSubstr("listens on every address"));
  EXPECT_FALSE(OpenChannel("10.0.0.1:7465", {.token_file = Write("token", kReadToken)}, arguments).ok())
      << "no token travels in the clear";
  EXPECT_FALSE(OpenChannel("127.0.0.1.example.com:7465", {}, arguments).ok());
}

TEST_F(SecurityTest, WantsKeysAndTokensThatNobodyElseCanRead) {
  TlsFiles files = Good().Of("orchestrator");
  std::ifstream key(files.key);
  const std::string text((std::istreambuf_iterator<char>(key)), {});
  const auto refused = [&](const SecurityOptions& security, const std::string& because) {
    const absl::Status status = Start("127.0.0.1:0", security);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(because));
  };
  files.key = Write("open.key", text, 0644);
  refused({.tls = files}, "can be read by others (mode 644): chmod 600 it");
  files.key = Write("written.key", text, 0602);
  refused({.tls = files}, "can be read by others");
  files.key = Write("no.key", "not a key");
  refused({.tls = files}, "expected a PEM file");
  files.key = (folder_.path() / "missing.key").string();
  refused({.tls = files}, "can't be read: No such file");
  files.key = folder_.path().string();
  refused({.tls = files}, "is not a regular file");
  refused({.tokens = Write("open", "read 0123456789abcdef", 0640 | 0004)}, "can be read by others");
  refused({.tokens = Write("bad", "read 0123456789abcdef\nwhat\n")}, ":2: ");
  if (geteuid() != 0) {
    files.key = Write("closed.key", text, 0);
    refused({.tls = files}, "can't be read: Permission denied");
  }
  const std::string open_token = Write("token", kReadToken, 0644);
  EXPECT_THAT(std::string(OpenChannel("127.0.0.1:1", {.token_file = open_token}, {}).status().message()),
              HasSubstr("chmod 600"));
  files = Good().Of("orchestrator");
  files.key = Good().Path("submit.key");
  refused({.tls = files}, "does not belong to the certificate");
}

}  // namespace
}  // namespace pawl
