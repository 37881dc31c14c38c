#include "orchestrator/server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "orchestrator/campaign_service.h"
#include "orchestrator/engine/tree_chooser.h"
#include "orchestrator/history.h"
#include "orchestrator/worker_service.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kMaxMessage = 4 << 20;
constexpr auto kTick = std::chrono::milliseconds(200);

absl::Status CheckAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) {
    return address.size() > 5 ? absl::OkStatus() : absl::InvalidArgumentError("unix: needs a path behind it");
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is no address; expected host:port or unix:/path"));
  }
  const std::string host = address.substr(0, colon);
  in_addr ip;  // and no name that only looks like one
  const bool loopback = inet_pton(AF_INET, host.c_str(), &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127;
  if (host == "localhost" || host == "[::1]" || loopback) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address,
                   "\" can be reached by others, and there is no encryption yet: listen on 127.0.0.1 or a "
                   "unix: socket, and tunnel to it (ssh -L)"));
}

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

OrchestratorOptions WithProfiles(OrchestratorOptions options, const ProfileSet& profiles) {
  options.profiles = &profiles;
  return options;
}

class RunningServer final : public Server {
 public:
  RunningServer(Store& store, const ServerOptions& options, ProfileSet profiles)
      : profiles_(std::move(profiles)),
        chooser_(profiles_.tree),
        orchestrator_(store, chooser_, hub_, SteadyClock(), WithProfiles(options.orchestrator, profiles_)),
        history_(store),
        campaigns_(orchestrator_, history_, store, hub_),
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
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
      server_->Wait();
    }
  }

  absl::Status Listen(const ServerOptions& options) {
    if (absl::Status status = CheckAddress(options.listen); !status.ok()) return status;
    if (absl::StartsWith(options.listen, "unix:") && InUse(options.listen.substr(5))) {
      return absl::UnavailableError(absl::StrCat("another process listens on ", options.listen));
    }
    if (absl::Status status = orchestrator_.Load(); !status.ok()) return status;
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
    int port = 0;
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    // Two daemons must not share a port, each with half of the clients.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.RegisterService(&campaigns_);
    builder.RegisterService(&workers_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat("can't listen on ", options.listen,
                                                 ": is another orchestrator there, or the path not writable?"));
    }
    address_ = options.listen;
    if (!absl::StartsWith(address_, "unix:")) {
      address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", port);
    }
    ticker_ = std::thread([this] { Tick(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

  void Drain(absl::Duration patience, const std::function<bool()>& forced) override {
    orchestrator_.StopLeasing();
    const absl::Time deadline = absl::Now() + patience;
    while (orchestrator_.leases_out() > 0 && absl::Now() < deadline && !forced()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
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

  const ProfileSet profiles_;
  const TreeChooser chooser_;
  WatchHub hub_;
  Orchestrator orchestrator_;
  const History history_;
  CampaignService campaigns_;
  WorkerService workers_;
  std::unique_ptr<grpc::Server> server_;
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
