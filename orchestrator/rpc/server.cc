#include "orchestrator/rpc/server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "agent/campaigns/grpc_campaigns.h"
#include "agent/tools/pawl_features.h"
#include "base/channel/channel.h"
#include "base/sync/steady_condition.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "kernels/limits.h"
#include "orchestrator/core/history.h"
#include "orchestrator/core/report.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "orchestrator/http/sent_bundles.h"
#include "orchestrator/http/server.h"
#include "orchestrator/rpc/acceptor.h"
#include "orchestrator/rpc/call_timer.h"
#include "orchestrator/rpc/campaign_service.h"
#include "orchestrator/rpc/worker_service.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

// Data, a cubin or sources, headers; reference, setup and problem.py.
static_assert(kMaxRpcBytes >= kMaxDataBytes + kMaxCubinBytes + kMaxFilesBytes + 4 * kMaxSourceBytes);
constexpr int kMaxStreams = 1000;            // calls that one connection may have under way; more wait
constexpr int kMaxMetadataBytes = 16 << 10;  // of a call's headers: tokens, names, deadlines
constexpr int kKeepaliveMs = 60000;
constexpr int kMissingReports = 100;  // the newest campaigns whose pages are looked for at the start
constexpr absl::Duration kReportPause = absl::Seconds(30);  // before one that can't be written is tried again
constexpr absl::Duration kMissingReportAge = absl::Hours(24);
constexpr auto kTick = std::chrono::milliseconds(200);

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

std::unique_ptr<ReportWriter> MakeWriter(Store& store, const Reports& reports, const std::string& folder) {
  return std::make_unique<ReportWriter>(reports, folder, kReportPause, [&store](const std::vector<int64_t>& unwritten) {
    return store.NoteUnwrittenReports(unwritten);
  });
}

class RunningServer final : public Server {
 public:
  RunningServer(Store& store, const ServerOptions& options, ProfileSet profiles)
      : store_(store),
        profiles_(std::move(profiles)),
        chooser_(profiles_.tree),
        reports_(store, chooser_, profiles_, SteadyClock()),
        writer_(options.reports.empty() ? nullptr : MakeWriter(store, reports_, options.reports)),
        orchestrator_(store, chooser_, hub_, SteadyClock(), Complete(options.orchestrator, profiles_, writer_.get())),
        history_(store, profiles_.metrics),
        campaigns_(orchestrator_, history_, reports_, store, hub_),
        workers_(orchestrator_, history_) {}

  ~RunningServer() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    wake_.SignalAll();
    if (ticker_.joinable()) ticker_.join();
    if (server_ != nullptr) {
      orchestrator_.StopLeasing();
      hub_.CloseAll();
      http_.reset();
      acceptor_.reset();
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
      server_->Wait();
    }
  }

  absl::Status Listen(const ServerOptions& options) {
    if (absl::Status status = CheckListening(options.listen, options.security); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
        MakeServerCredentials(options.listen, options.security);
    if (!credentials.ok()) return credentials.status();
    absl::StatusOr<std::unique_ptr<ListeningSockets>> sockets = ListeningSockets::Open(options.listen, "--listen");
    if (!sockets.ok()) return sockets.status();
    if (absl::Status status = orchestrator_.Load(); !status.ok()) return status;
    if (writer_ != nullptr) {
      const absl::StatusOr<std::vector<v1::Campaign>> newest =
          store_.ListCampaigns(std::numeric_limits<int64_t>::max(), kMissingReports);
      if (!newest.ok()) return newest.status();
      const absl::StatusOr<std::vector<int64_t>> unwritten = store_.UnwrittenReports();
      if (!unwritten.ok()) return unwritten.status();
      writer_->Resume(*unwritten);
      writer_->WriteMissing(*newest, absl::Now() - kMissingReportAge);
    }
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
    auto connections = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, *credentials);
    builder.SetMaxReceiveMessageSize(kMaxRpcBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
    // Nobody who speaks to it compresses, and a small message that unpacks to gigabytes would be unpacked first.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    // Who has gone without a word (a watcher above all, which needs no deadline) is found out.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs / 2);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> timers;
    timers.push_back(std::make_unique<CallTimers>(orchestrator_.meters()));
    builder.experimental().SetInterceptorCreators(std::move(timers));
    builder.RegisterService(&campaigns_);
    builder.RegisterService(&workers_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError(absl::StrCat("can't serve on ", options.listen));
    address_ = options.listen;
    if (!absl::StartsWith(address_, "unix:")) {
      address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", (*sockets)->port());
    }
    acceptor_ = std::make_unique<Acceptor>(*std::move(sockets), std::move(connections));
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
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(patience);
    while (orchestrator_.leases_out() > 0 && std::chrono::steady_clock::now() < deadline && !forced()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  absl::Status ListenForHttp(const ServerOptions& options) {
    HttpServerOptions http;
    http.address = options.http;
    http.api.metrics = &profiles_.metrics;
    const bool socket = absl::StartsWith(address_, "unix:");
    http.api.orchestrator =
        socket ? absl::StrCat("unix:", std::filesystem::absolute(address_.substr(5)).string()) : address_;
    http.api.tls = options.security.tls.any();
    http.api.tokens = !options.security.tokens.empty();
    http.security = options.security;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);  // it comes from this very process
    const std::shared_ptr<grpc::Channel> channel = server_->InProcessChannel(arguments);
    http.mcp = std::make_shared<PawlFeatures>(OpenGrpcCampaigns(channel), std::make_unique<SentBundles>(),
                                              PawlFeatures::Options{.version = PAWL_VERSION});
    http.probes.metrics = [this] { return ServiceMetrics(orchestrator_, store_); };
    http.probes.ready = [this] {
      return orchestrator_.serving() ? absl::OkStatus()
                                     : absl::UnavailableError("not ready: the database can't be written, see the log");
    };
    http.probes.remark = [this]() -> std::string {
      const v1::Maintenance maintenance = orchestrator_.GetMaintenance();
      if (!maintenance.on()) return "";
      return absl::StrCat("maintenance, no trial is leased; ", maintenance.leased(), " still run");
    };
    absl::StatusOr<std::unique_ptr<HttpServer>> started = HttpServer::Start(channel, http);
    if (!started.ok()) return started.status();
    http_ = *std::move(started);
    return absl::OkStatus();
  }

  void Tick() {
    bool serving = true;
    while (!StopsBeforeNextTick()) {
      orchestrator_.Tick();
      if (orchestrator_.serving() != serving) {
        serving = !serving;
        server_->GetHealthCheckService()->SetServingStatus(serving);
      }
    }
  }

  bool StopsBeforeNextTick() {
    absl::MutexLock lock(&mutex_);
    const auto next = std::chrono::steady_clock::now() + kTick;
    while (!stopping_ && wake_.WaitUntil(&mutex_, next)) {
    }
    return stopping_;
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
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<HttpServer> http_;
  std::string address_;
  absl::Mutex mutex_;
  SteadyCondition wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread ticker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Store& store, const ServerOptions& options) {
#ifdef NDEBUG
  // Distributions build abseil with its search for lock cycles, which is under one lock for the whole process. Debug
  // builds and their tests keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  absl::StatusOr<ProfileSet> profiles =
      options.profiles.empty() ? ProfileSet::Default() : ProfileSet::Load(options.profiles);
  if (!profiles.ok()) return profiles.status();
  auto server = std::make_unique<RunningServer>(store, options, *std::move(profiles));
  if (absl::Status status = server->Listen(options); !status.ok()) return status;
  return server;
}

}  // namespace pawl
