#include "orchestrator/rpc/server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "orchestrator/core/history.h"
#include "orchestrator/core/report.h"
#include "orchestrator/core/report_writer.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "orchestrator/http/server.h"
#include "orchestrator/rpc/campaign_service.h"
#include "orchestrator/rpc/worker_service.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kMaxMessage = 4 << 20;
constexpr int kMaxStreams = 1000;  // calls that one connection may have under way; more wait
constexpr int kKeepaliveMs = 60000;
constexpr int kMissingReports = 100;  // the newest campaigns whose pages are looked for at the start
constexpr absl::Duration kMissingReportAge = absl::Hours(24);
constexpr auto kTick = std::chrono::milliseconds(200);

// gRPC would take a socket away from whoever listens on it.
bool InUse(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;  // gRPC refuses it
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return connected;
}

// The library puts reflection into every server of a program that it is linked to.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

// The time of day that does not jump: leases must not run out because somebody set the clock.
Orchestrator::Clock SteadyClock() {
  return [day = absl::Now(), steady = std::chrono::steady_clock::now()] {
    return day + absl::FromChrono(std::chrono::steady_clock::now() - steady);
  };
}

OrchestratorOptions Complete(OrchestratorOptions options, const ProfileSet& profiles, ReportWriter* writer) {
  options.profiles = &profiles;
  if (writer != nullptr) options.ended = [writer](int64_t campaign) { writer->Write(campaign); };
  return options;
}

class RunningServer final : public Server {
 public:
  RunningServer(Store& store, const ServerOptions& options, ProfileSet profiles)
      : store_(store),
        profiles_(std::move(profiles)),
        chooser_(profiles_.tree),
        reports_(store, chooser_, profiles_, SteadyClock()),
        writer_(options.reports.empty() ? nullptr : std::make_unique<ReportWriter>(reports_, options.reports)),
        orchestrator_(store, chooser_, hub_, SteadyClock(), Complete(options.orchestrator, profiles_, writer_.get())),
        history_(store, profiles_.metrics),
        campaigns_(orchestrator_, history_, reports_, store, hub_),
        workers_(orchestrator_, history_) {}

  ~RunningServer() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (ticker_.joinable()) ticker_.join();
    if (server_ != nullptr) {
      orchestrator_.StopLeasing();
      hub_.CloseAll();
      http_.reset();
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
      server_->Wait();
    }
  }

  absl::Status Listen(const ServerOptions& options) {
    if (absl::Status status = CheckListening(options.listen, options.security); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
        MakeServerCredentials(options.listen, options.security);
    if (!credentials.ok()) return credentials.status();
    if (absl::StartsWith(options.listen, "unix:") && InUse(options.listen.substr(5))) {
      return absl::UnavailableError(absl::StrCat("another process listens on ", options.listen));
    }
    if (absl::Status status = orchestrator_.Load(); !status.ok()) return status;
    if (writer_ != nullptr) {
      const absl::StatusOr<std::vector<v1::Campaign>> newest =
          store_.ListCampaigns(std::numeric_limits<int64_t>::max(), kMissingReports);
      if (!newest.ok()) return newest.status();
      writer_->WriteMissing(*newest, absl::Now() - kMissingReportAge);
    }
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
    int port = 0;
    builder.AddListeningPort(options.listen, *credentials, &port);
    // Two daemons must not share a port, each with half of the clients.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
    // Who has gone without a word (a watcher above all, which needs no deadline) is found out.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs / 2);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.RegisterService(&campaigns_);
    builder.RegisterService(&workers_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("can't listen on ", options.listen, ": is another orchestrator there, or the path not writable?",
                       options.security.tls.any() ? " Or is the key not the certificate's?" : ""));
    }
    address_ = options.listen;
    if (!absl::StartsWith(address_, "unix:")) {
      address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", port);
    }
    if (!options.http.empty()) {
      if (absl::Status status = ListenForHttp(options); !status.ok()) return status;
    }
    ticker_ = std::thread([this] { Tick(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  std::string url() const override { return http_ == nullptr ? "" : http_->url(); }

  void Drain(absl::Duration patience, const std::function<bool()>& forced) override {
    orchestrator_.StopLeasing();
    const absl::Time deadline = absl::Now() + patience;
    while (orchestrator_.leases_out() > 0 && absl::Now() < deadline && !forced()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  absl::Status ListenForHttp(const ServerOptions& options) {
    HttpServerOptions http;
    http.address = options.http;
    http.api.metrics = &profiles_.metrics;
    http.security = options.security;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);  // it comes from this very process
    absl::StatusOr<std::unique_ptr<HttpServer>> started = HttpServer::Start(server_->InProcessChannel(arguments), http);
    if (!started.ok()) return started.status();
    http_ = *std::move(started);
    return absl::OkStatus();
  }

  void Tick() {
    std::unique_lock lock(mutex_);
    bool serving = true;
    while (!wake_.wait_for(lock, kTick, [this] { return stopping_; })) {
      lock.unlock();
      orchestrator_.Tick();
      if (orchestrator_.serving() != serving) {
        serving = !serving;
        server_->GetHealthCheckService()->SetServingStatus(serving);
      }
      lock.lock();
    }
  }

  Store& store_;
  const ProfileSet profiles_;
  const TreeChooser chooser_;
  WatchHub hub_;
  const Reports reports_;
  const std::unique_ptr<ReportWriter> writer_;  // outlives the orchestrator, which tells it what ended
  Orchestrator orchestrator_;
  const History history_;
  CampaignService campaigns_;
  WorkerService workers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HttpServer> http_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread ticker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Store& store, const ServerOptions& options) {
  absl::StatusOr<ProfileSet> profiles =
      options.profiles.empty() ? ProfileSet::Default() : ProfileSet::Load(options.profiles);
  if (!profiles.ok()) return profiles.status();
  auto server = std::make_unique<RunningServer>(store, options, *std::move(profiles));
  if (absl::Status status = server->Listen(options); !status.ok()) return status;
  return server;
}

}  // namespace pawl
