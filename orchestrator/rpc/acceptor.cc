#include "orchestrator/rpc/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr rlim_t kFilesForOthers = 128;  // for the database, the dashboard and reports; at most a quarter of all
constexpr int kPauseMs = 100;            // after an accept that the system refused
constexpr auto kWarningPause = std::chrono::minutes(1);

rlim_t FilesAllowed() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

}  // namespace

Acceptor::Acceptor(std::unique_ptr<ListeningSockets> sockets, std::unique_ptr<Connections> connections)
    : sockets_(std::move(sockets)),
      connections_(std::move(connections)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(stop_);
}

void Acceptor::Run() {
  std::vector<pollfd> waits = {{stop_, POLLIN, 0}};
  for (const int socket : sockets_->sockets()) waits.push_back({socket, POLLIN, 0});
  for (;;) {
    if (poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents != 0) AcceptOne(waits[i].fd);
    }
  }
}

void Acceptor::AcceptOne(int listener) {
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    if (errno == EMFILE || errno == ENFILE) NoteRefused();
    pollfd stop = {stop_, POLLIN, 0};
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) poll(&stop, 1, kPauseMs);
    return;
  }
  // A new file gets the lowest free number, so the number says how many are open.
  const rlim_t allowed = FilesAllowed();
  if (static_cast<rlim_t>(connection) >= allowed - std::min(kFilesForOthers, allowed / 4)) {
    close(connection);
    NoteRefused();
    return;
  }
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // fails on a unix: socket, which needs none
  Connections::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = connection;
  connections_->HandleNewConnection(&parameters);
}

void Acceptor::NoteRefused() {
  ++refused_;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_warning_) return;
  spdlog::warn(
      "refused {} connections: nearly all of the {} files that this process may open are in use; end clients, or raise "
      "the limit (LimitNOFILE= in systemd's unit, ulimit -n elsewhere)",
      refused_, FilesAllowed());
  next_warning_ = now + kWarningPause;
  refused_ = 0;
}

}  // namespace pawl
